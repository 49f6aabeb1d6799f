// The address of the page. It is replaced once the state has come to rest, as browsers limit how often that may happen.

const REST = 50; // milliseconds
let fragment = null; // that is still to be written
let timer;

/** Replace the address when no other one has followed for a moment. */
export function replaceAddress(next) {
  forgetAddress();
  fragment = next;
  timer = setTimeout(writeAddress, REST);
}

/** Replace the address now by the one that waits, if there is one. */
export function writeAddress() {
  if (fragment !== null) history.replaceState(null, "", fragment);
  forgetAddress();
}

export function forgetAddress() {
  clearTimeout(timer);
  fragment = null;
}
