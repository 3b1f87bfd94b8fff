const fs = require("fs");

function files(name) {
  // ruleid: palisade.javascript.world-writable
  fs.chmodSync(name, 0o777);
  // ruleid: palisade.javascript.world-writable
  fs.chmodSync(name, "666");
  // ok: palisade.javascript.world-writable
  fs.chmodSync(name, 0o640);
  // ok: palisade.javascript.world-writable
  fs.mkdirSync(name, { mode: 0o777 });
  // ok: palisade.javascript.world-writable
  fs.chmodSync(name, "755");
}
