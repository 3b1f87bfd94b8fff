package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/etag"
	"github.com/palisade/palisade/services/internal/gateway"
)

//go:embed dist
var dist embed.FS

// policy is the Content-Security-Policy of the console. Everything comes from this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// contentTypes are the types of files by their extension. The operating system's table may have others.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

// asset is one file. Its name stays the same when its content changes, so browsers ask for it each time.
type asset struct {
	content           string
	contentType, etag string
}

// assets are the files of the console by their path below /console/.
type assets map[string]asset

const startPage = "index.html"

// newAssets reads the files that this program contains. prefix is the path of the server's public URL.
func newAssets(prefix string) assets {
	files := assets{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "dist/")
		if name == startPage {
			content = []byte(withPaths(string(content), prefix))
		}
		sum := sha256.Sum256(content)
		files[name] = asset{
			content: string(content), contentType: contentTypes[path.Ext(name)],
			etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, // weak: the gateway compresses
		}
		return nil
	})
	if err != nil {
		panic("console: " + err.Error()) // the files are part of the program
	}
	return files
}

// withPaths completes the relative addresses in the start page, which is the answer for many paths.
func withPaths(page, prefix string) string {
	prefix = html.EscapeString(prefix)
	return strings.NewReplacer(`"./`, `"`+prefix+`/console/`, `name="palisade-path" content=""`, `name="palisade-path" content="`+prefix+`"`).Replace(page)
}

// ServeHTTP answers with a file. The paths of screens have the start page.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		apierr.WriteHTTP(w, apierr.MethodNotAllowed(r.Method, "GET, HEAD"), gateway.RequestID(r.Context()))
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/console/")
	file, ok := a[name]
	if !ok && isAsset(name) {
		apierr.WriteHTTP(w, apierr.RouteNotFound(r.URL.Path), gateway.RequestID(r.Context()))
		return
	}
	if !ok {
		file = a[startPage]
	}
	header := w.Header()
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", file.etag)
	if etag.Matches(r.Header.Get("If-None-Match"), file.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", file.contentType)
	header.Set("Content-Length", strconv.Itoa(len(file.content)))
	_, _ = io.WriteString(w, file.content) // the caller may be gone
}

// isAsset reports whether a path can only be the path of a file: the first segment of a screen is the slug of an
// organization, which has no dot.
func isAsset(name string) bool {
	first, _, below := strings.Cut(name, "/")
	return first == "assets" || !below && strings.Contains(first, ".")
}

// secure sets the headers of pages, in addition to the gateway's.
func secure(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Frame-Options", "DENY")
}
