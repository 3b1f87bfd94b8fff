const cors = require("cors");

function share(app, req, res) {
  // ruleid: palisade.javascript.cors-reflected-origin
  app.use(cors({ origin: true, credentials: true }));
  // ruleid: palisade.javascript.cors-reflected-origin
  res.setHeader("Access-Control-Allow-Origin", req.headers.origin);
  // ok: palisade.javascript.cors-reflected-origin
  app.use(cors({ origin: "https://app.acme.test", credentials: true }));
  // ok: palisade.javascript.cors-reflected-origin
  app.use(cors());
  // ok: palisade.javascript.cors-reflected-origin
  app.use(cors({ origin: true }));
}

function shareWithListed(req, res, allowed) {
  // ok: palisade.javascript.cors-reflected-origin
  if (allowed.includes(req.headers.origin)) res.setHeader("Access-Control-Allow-Origin", req.headers.origin);
}

function shareWithSet(req, res, allowed) {
  if (allowed.has(req.headers.origin)) {
    // ok: palisade.javascript.cors-reflected-origin
    res.header("Access-Control-Allow-Origin", req.headers.origin);
  }
}

function shareWithMatching(req, res, pattern) {
  if (req.method === "GET" && pattern.test(req.headers.origin)) {
    // ok: palisade.javascript.cors-reflected-origin
    res.setHeader("Access-Control-Allow-Origin", req.headers.origin);
  }
}

function shareWithOne(req, res) {
  if (req.headers.origin === "https://app.acme.test") {
    // ok: palisade.javascript.cors-reflected-origin
    res.setHeader("Access-Control-Allow-Origin", req.headers.origin);
  }
}

function shareEarly(req, res, allowed) {
  if (!allowed.includes(req.headers.origin)) return;
  // ok: palisade.javascript.cors-reflected-origin
  res.setHeader("Access-Control-Allow-Origin", req.headers.origin);
}

function shareWithAll(app, req, res) {
  app.use(
    // ruleid: palisade.javascript.cors-reflected-origin
    cors({ origin: true, methods: ["GET"], credentials: true }),
  );
  if (req.headers.origin) {
    // ruleid: palisade.javascript.cors-reflected-origin
    res.setHeader("Access-Control-Allow-Origin", req.headers.origin);
  }
}
