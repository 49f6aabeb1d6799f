// Components that are drawn again only when they have other properties.

import { useMemo } from "preact/hooks";

export const memo = (Component) => (properties) => useMemo(() => <Component {...properties} />, Object.values(properties));
