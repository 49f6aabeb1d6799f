// Whether a model fits on GPUs.

export const Fit = () => <h1>Does it fit?</h1>;
