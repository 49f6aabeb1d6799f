// A tiny trained model that runs on the page.

export const Run = () => <h1>Watch one run</h1>;
