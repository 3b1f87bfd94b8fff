const { BrowserWindow } = require("electron");

function open(preload) {
  // ruleid: palisade.javascript.electron-node-integration
  new BrowserWindow({ width: 800, webPreferences: { nodeIntegration: true } });
  // ok: palisade.javascript.electron-node-integration
  new BrowserWindow({ width: 800, webPreferences: { preload } });
  // ok: palisade.javascript.electron-node-integration
  new BrowserWindow({ width: 800, webPreferences: { nodeIntegration: false, contextIsolation: true } });
  // ok: palisade.javascript.electron-node-integration
  new BrowserWindow({ width: 800, webPreferences: { nodeIntegrationInWorker: false } });
}
