function Comment({ text }) {
  // ruleid: palisade.javascript.react-raw-html
  return <p className="comment" dangerouslySetInnerHTML={{ __html: text }} />;
}

function Line() {
  // ok: palisade.javascript.react-raw-html
  return <p className="line" dangerouslySetInnerHTML={{ __html: "<hr>" }} />;
}

function Clean({ text }) {
  // ok: palisade.javascript.react-raw-html
  return <p className="comment" dangerouslySetInnerHTML={{ __html: DOMPurify.sanitize(text) }} />;
}
