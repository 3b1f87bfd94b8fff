fun configure(settings: WebSettings) {
    // ruleid: palisade.kotlin.webview-file-access
    settings.allowUniversalAccessFromFileURLs = true
    // ruleid: palisade.kotlin.webview-file-access
    settings.setAllowFileAccessFromFileURLs(true)
    // ok: palisade.kotlin.webview-file-access
    settings.allowUniversalAccessFromFileURLs = false
    // ok: palisade.kotlin.webview-file-access
    settings.javaScriptEnabled = true
    // ok: palisade.kotlin.webview-file-access
    settings.setAllowFileAccessFromFileURLs(false)
}
