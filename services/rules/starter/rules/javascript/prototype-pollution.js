const _ = require("lodash");

function update(req, settings) {
  // ruleid: palisade.javascript.prototype-pollution
  _.merge(settings, req.body);
  // ok: palisade.javascript.prototype-pollution
  _.merge(settings, { theme: req.body.theme });
  // ok: palisade.javascript.prototype-pollution
  _.pick(req.body, ["theme"]);
}
