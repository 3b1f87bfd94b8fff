const fs = require("fs");
const path = require("path");

function report(req, res) {
  // ruleid: palisade.javascript.path-traversal
  fs.readFileSync("/srv/reports/" + req.params.name);
  // ruleid: palisade.javascript.path-traversal
  res.sendFile(path.join("/srv/reports", req.query.name));
  // ok: palisade.javascript.path-traversal
  fs.readFileSync("/srv/reports/" + path.basename(req.params.name));
  // ok: palisade.javascript.path-traversal
  fs.readFileSync("/srv/reports/" + Number(req.params.id));
  // ok: palisade.javascript.path-traversal
  res.sendFile(req.params.name, { root: "/srv/reports" });
}
