// The first view.

export const Start = () => <h1>How big is a language model, and why?</h1>;
