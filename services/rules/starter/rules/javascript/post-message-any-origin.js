function send(frame, worker, text) {
  // ruleid: palisade.javascript.post-message-any-origin
  frame.postMessage(text, "*");
  // ok: palisade.javascript.post-message-any-origin
  frame.postMessage(text, "https://app.acme.test");
  // ok: palisade.javascript.post-message-any-origin
  worker.postMessage(text);
}
