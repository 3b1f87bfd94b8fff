// ruleid: palisade.javascript.hardcoded-credential
const dbPassword = "k9Lw-battery-72";
// ok: palisade.javascript.hardcoded-credential
const mailPassword = process.env.MAIL_PASSWORD;
// ok: palisade.javascript.hardcoded-credential
const headerApiKey = "X-API-Key";
// ok: palisade.javascript.hardcoded-credential
const fieldPassword = "current-password";
// ok: palisade.javascript.hardcoded-credential
const samplePassword = "changeme-123";
