//go:build ignore

package samples

import (
	"context"
	"crypto/des"
	"crypto/md5"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"database/sql"
	"fmt"
	"html/template"
	"math/rand"
	"net/http"
	// ruleid: palisade.go.pprof-exposed
	_ "net/http/pprof"
	// ok: palisade.go.pprof-exposed
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"archive/zip"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/ssh"
)

func commands(ctx context.Context, name string, r *http.Request) {
	// ruleid: palisade.go.command-injection
	exec.CommandContext(ctx, "sh", "-c", "ls "+name)
	// ok: palisade.go.command-injection
	exec.CommandContext(ctx, "sh", "-c", "ls | wc -l")
	// ruleid: palisade.go.command-from-request
	exec.Command("convert", r.FormValue("file"))
	// ok: palisade.go.command-from-request
	exec.Command("convert", "-version")
}

func statements(ctx context.Context, db *sql.DB, id string) {
	// ruleid: palisade.go.sql-injection
	db.Query("SELECT name FROM users WHERE id = " + id)
	// ruleid: palisade.go.sql-injection
	db.QueryRowContext(ctx, fmt.Sprintf("SELECT name FROM users WHERE id = %s", id))
	// ok: palisade.go.sql-injection
	db.QueryRowContext(ctx, "SELECT name FROM users WHERE id = $1", id)
}

func connections(parser *jwt.Parser, token string, key ssh.PublicKey) {
	// ruleid: palisade.go.tls-verification-off
	_ = &tls.Config{ServerName: "db.acme.test", InsecureSkipVerify: true}
	// ok: palisade.go.tls-verification-off
	_ = &tls.Config{ServerName: "db.acme.test"}
	// ruleid: palisade.go.tls-old-version
	_ = &tls.Config{MinVersion: tls.VersionTLS10}
	// ok: palisade.go.tls-old-version
	_ = &tls.Config{MinVersion: tls.VersionTLS13}
	// ruleid: palisade.go.ssh-host-key-ignored
	_ = ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()}
	// ok: palisade.go.ssh-host-key-ignored
	_ = ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(key)}
	// ruleid: palisade.go.jwt-unverified
	parser.ParseUnverified(token, jwt.MapClaims{})
	// ok: palisade.go.jwt-unverified
	parser.ParseWithClaims(token, jwt.MapClaims{}, nil)
}

func cryptography(key, data []byte) {
	// ruleid: palisade.go.weak-hash
	md5.Sum(data)
	// ok: palisade.go.weak-hash
	sha256.Sum256(data)
	// ruleid: palisade.go.weak-cipher
	des.NewCipher(key)
	// ok: palisade.go.weak-cipher
	sha256.New()
	// ruleid: palisade.go.insecure-random
	resetToken := fmt.Sprint(rand.Int63())
	// ok: palisade.go.insecure-random
	sessionToken := cryptorand.Text()
	// ok: palisade.go.insecure-random
	jitter := rand.Intn(100)
	_, _, _ = resetToken, sessionToken, jitter
}

// ruleid: palisade.go.hardcoded-credential
const databasePassword = "correct-horse-battery"

// ok: palisade.go.hardcoded-credential
var mailPassword = os.Getenv("MAIL_PASSWORD")

func requested(w http.ResponseWriter, r *http.Request) {
	// ruleid: palisade.go.path-traversal
	os.Open("/srv/reports/" + r.FormValue("name"))
	// ok: palisade.go.path-traversal
	os.Open("/srv/reports/" + filepath.Base(r.FormValue("name")))
	// ruleid: palisade.go.ssrf
	http.Get(r.FormValue("url"))
	// ok: palisade.go.ssrf
	http.Get("https://api.acme.test/status")
	// ruleid: palisade.go.open-redirect
	http.Redirect(w, r, r.FormValue("next"), http.StatusFound)
	// ok: palisade.go.open-redirect
	http.Redirect(w, r, "/", http.StatusFound)
	// ruleid: palisade.go.unescaped-template-value
	_ = template.HTML(r.FormValue("text"))
	// ok: palisade.go.unescaped-template-value
	_ = template.HTML("<hr>")
	_ = url.Values{}
}

func files(archive *zip.Reader, dir string) {
	for _, file := range archive.File {
		// ruleid: palisade.go.zip-slip
		_ = filepath.Join(dir, file.Name)
	}
	// ok: palisade.go.zip-slip
	_ = filepath.Join(dir, "report.txt")
	// ruleid: palisade.go.world-writable
	os.WriteFile(dir, nil, 0o666)
	// ok: palisade.go.world-writable
	os.WriteFile(dir, nil, 0o640)
}
