const session = require("express-session");

function sessions(app, keys) {
  // ruleid: palisade.javascript.session-hardcoded-secret
  app.use(session({ secret: "k9Lw-battery-72", resave: false }));
  // ok: palisade.javascript.session-hardcoded-secret
  app.use(session({ secret: process.env.SESSION_KEY, resave: false }));
  // ok: palisade.javascript.session-hardcoded-secret
  app.use(session({ secret: keys, resave: false }));
}
