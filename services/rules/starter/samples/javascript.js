const cp = require("child_process");
const crypto = require("crypto");
const fs = require("fs");
const jwt = require("jsonwebtoken");
const path = require("path");
const serialize = require("node-serialize");
const session = require("express-session");

function commands(name) {
  // ruleid: palisade.javascript.command-injection
  cp.exec("ls " + name);
  // ok: palisade.javascript.command-injection
  cp.exec("ls -l");
  // ok: palisade.javascript.command-injection
  cp.execFile("ls", [name]);
}

function statements(db, id) {
  // ruleid: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id = " + id);
  // ruleid: palisade.javascript.sql-injection
  db.query(`SELECT name FROM users WHERE id = ${id}`);
  // ok: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id = $1", [id]);
}

function code(text) {
  // ruleid: palisade.javascript.eval-injection
  eval(text);
  // ok: palisade.javascript.eval-injection
  eval("1 + 1");
  // ruleid: palisade.javascript.unsafe-deserialization
  serialize.unserialize(text);
  // ok: palisade.javascript.unsafe-deserialization
  JSON.parse(text);
}

function page(element, text, frame) {
  // ruleid: palisade.javascript.dom-xss
  element.innerHTML = text;
  // ok: palisade.javascript.dom-xss
  element.innerHTML = "<br>";
  // ok: palisade.javascript.dom-xss
  element.textContent = text;
  // ruleid: palisade.javascript.post-message-any-origin
  frame.postMessage(text, "*");
  // ok: palisade.javascript.post-message-any-origin
  frame.postMessage(text, "https://app.acme.test");
}

function Comment({ text }) {
  // ruleid: palisade.javascript.react-raw-html
  return <p className="comment" dangerouslySetInnerHTML={{ __html: text }} />;
}

function Rule() {
  // ok: palisade.javascript.react-raw-html
  return <p className="rule" dangerouslySetInnerHTML={{ __html: "<hr>" }} />;
}

function handler(req, res) {
  // ruleid: palisade.javascript.reflected-xss
  res.send("Hello " + req.query.name);
  // ok: palisade.javascript.reflected-xss
  res.send("Hello " + encodeURIComponent(req.query.name));
  // ruleid: palisade.javascript.path-traversal
  fs.readFileSync("/srv/reports/" + req.params.name);
  // ok: palisade.javascript.path-traversal
  fs.readFileSync("/srv/reports/" + path.basename(req.params.name));
  // ruleid: palisade.javascript.ssrf
  fetch(req.query.url);
  // ok: palisade.javascript.ssrf
  fetch("https://api.acme.test/status");
  // ruleid: palisade.javascript.open-redirect
  res.redirect(req.query.next);
  // ok: palisade.javascript.open-redirect
  res.redirect("/");
  // ruleid: palisade.javascript.cookie-not-http-only
  res.cookie("theme", "dark", { httpOnly: false });
  // ok: palisade.javascript.cookie-not-http-only
  res.cookie("theme", "dark", { httpOnly: true });
}

function connections(token, key) {
  // ruleid: palisade.javascript.tls-verification-off
  const insecure = { host: "db.acme.test", rejectUnauthorized: false };
  // ok: palisade.javascript.tls-verification-off
  const secure = { host: "db.acme.test", rejectUnauthorized: true };
  // ruleid: palisade.javascript.jwt-unverified
  jwt.verify(token, key, { algorithms: ["none"] });
  // ok: palisade.javascript.jwt-unverified
  jwt.verify(token, key, { algorithms: ["RS256"] });
  return [insecure, secure];
}

function cryptography(key, iv) {
  // ruleid: palisade.javascript.weak-hash
  crypto.createHash("md5");
  // ok: palisade.javascript.weak-hash
  crypto.createHash("sha256");
  // ruleid: palisade.javascript.weak-cipher
  crypto.createCipheriv("aes-128-ecb", key, iv);
  // ok: palisade.javascript.weak-cipher
  crypto.createCipheriv("aes-256-gcm", key, iv);
  // ruleid: palisade.javascript.insecure-random
  const resetToken = Math.random().toString(36);
  // ok: palisade.javascript.insecure-random
  const sessionToken = crypto.randomBytes(32).toString("hex");
  // ok: palisade.javascript.insecure-random
  const angle = Math.random() * 360;
  return [resetToken, sessionToken, angle];
}

// ruleid: palisade.javascript.hardcoded-credential
const dbPassword = "correct-horse-battery";
// ok: palisade.javascript.hardcoded-credential
const mailPassword = process.env.MAIL_PASSWORD;

function files(name) {
  // ruleid: palisade.javascript.world-writable
  fs.chmodSync(name, 0o777);
  // ok: palisade.javascript.world-writable
  fs.chmodSync(name, 0o640);
}
