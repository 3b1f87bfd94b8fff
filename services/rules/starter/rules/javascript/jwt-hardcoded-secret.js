const jwt = require("jsonwebtoken");

function tokens(claims, token) {
  // ruleid: palisade.javascript.jwt-hardcoded-secret
  jwt.sign(claims, "k9Lw-battery-72");
  // ruleid: palisade.javascript.jwt-hardcoded-secret
  jwt.verify(token, "k9Lw-battery-72", { algorithms: ["HS256"] });
  // ok: palisade.javascript.jwt-hardcoded-secret
  jwt.sign(claims, process.env.TOKEN_KEY);
  // ok: palisade.javascript.jwt-hardcoded-secret
  jwt.verify(token, readKey("tokens"), { algorithms: ["RS256"] });
  // ok: palisade.javascript.jwt-hardcoded-secret
  jwt.decode(token, { complete: true });
}
