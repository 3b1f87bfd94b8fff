const serialize = require("node-serialize");

function read(text, other) {
  // ruleid: palisade.javascript.unsafe-deserialization
  serialize.unserialize(text);
  // ok: palisade.javascript.unsafe-deserialization
  JSON.parse(text);
  // ok: palisade.javascript.unsafe-deserialization
  other.deserialize(text);
  // ok: palisade.javascript.unsafe-deserialization
  serialize.serialize({ text });
}
