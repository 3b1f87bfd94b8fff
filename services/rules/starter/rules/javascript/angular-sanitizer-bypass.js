function trust(sanitizer, text) {
  // ruleid: palisade.javascript.angular-sanitizer-bypass
  sanitizer.bypassSecurityTrustHtml(text);
  // ok: palisade.javascript.angular-sanitizer-bypass
  sanitizer.bypassSecurityTrustHtml("<hr>");
  // ok: palisade.javascript.angular-sanitizer-bypass
  sanitizer.bypassSecurityTrustHtml(DOMPurify.sanitize(text));
}
