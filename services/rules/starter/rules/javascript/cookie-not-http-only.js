const session = require("express-session");

function cookies(app, res, value) {
  // ruleid: palisade.javascript.cookie-not-http-only
  res.cookie("session", value, { httpOnly: false });
  // ruleid: palisade.javascript.cookie-not-http-only
  app.use(session({ secret: process.env.SESSION_KEY, cookie: { httpOnly: false } }));
  // ok: palisade.javascript.cookie-not-http-only
  res.cookie("session", value, { httpOnly: true });
  // ok: palisade.javascript.cookie-not-http-only
  res.cookie("theme", "dark");
}
