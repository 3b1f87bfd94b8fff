function page(element, text) {
  // ruleid: palisade.javascript.dom-xss
  element.innerHTML = text;
  // ruleid: palisade.javascript.dom-xss
  element.insertAdjacentHTML("beforeend", "<p>" + text);
  // ok: palisade.javascript.dom-xss
  element.innerHTML = "<br>";
  // ok: palisade.javascript.dom-xss
  element.innerHTML = DOMPurify.sanitize(text);
  // ok: palisade.javascript.dom-xss
  element.textContent = text;
}
