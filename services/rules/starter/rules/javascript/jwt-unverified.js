const jwt = require("jsonwebtoken");

function read(token, key) {
  // ruleid: palisade.javascript.jwt-unverified
  jwt.verify(token, key, { algorithms: ["none"] });
  // ruleid: palisade.javascript.jwt-unverified
  jwt.sign({ sub: "ada" }, "", { algorithm: "none" });
  // ok: palisade.javascript.jwt-unverified
  jwt.verify(token, key, { algorithms: ["RS256"] });
  // ok: palisade.javascript.jwt-unverified
  jwt.verify(token, key);
  const header = jwt.decode(token, { complete: true }).header;
  // ok: palisade.javascript.jwt-unverified
  if (header.alg === "none") {
    throw new Error("tokens need a signature");
  }
}
