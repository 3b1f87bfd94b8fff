package ticketing_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// keptLog keeps what a test logs.
type keptLog struct {
	testing.TB
	mu   sync.Mutex
	text bytes.Buffer
}

// Log keeps the line.
func (l *keptLog) Log(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(&l.text, args...)
}

// Logf keeps the line.
func (l *keptLog) Logf(format string, args ...any) { l.Log(fmt.Sprintf(format, args...)) }

// TestTokenCanary: the token of a tracker is in no answer, log or stored byte, also when the tracker repeats it.
func TestTokenCanary(t *testing.T) {
	if !testrun.On(testrun.SQLite) {
		t.Skip("the files of SQLite have all that is stored")
	}
	const token = "cAnArY5f1c9-tracker-token"
	log := &keptLog{TB: t}
	server := apitest.Start(log, func(c *config.Config) { c.LogLevel, c.EgressAllow = "debug", "127.0.0.1" })
	d := &desk{Server: server}
	j := trackertest.NewCloud(t)
	j.Token = token
	places := map[string][]byte{"create": []byte(d.connect(t, "jira", j.URL, j.User, token, "SEC", ""))}
	call := func(name, method, path, body string) {
		places[name] = []byte(d.Do(t, d.Token, method, path, body).Body)
	}
	d.Upload(t, "acme/web", "main", report("sqli a.go", "xss b.go"))
	call("check", http.MethodPost, d.path("/%d/check", d.instance), `{}`)
	call("tickets", http.MethodPost, d.path("/%d/create_tickets", d.instance), `{"issueFilters":{},"projectId":"OPS"}`)
	d.Upload(t, "acme/api", "main", report("sqli a.go"))
	j.Answer("", func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"errorMessages":["%s:%s %s"],"errors":{"%s":"no"}}`, user, pass, r.Header.Get("Authorization"), pass)
	})
	call("echoed check", http.MethodPost, d.path("/%d/check", d.instance), `{}`)
	call("echoed tickets", http.MethodPost, d.path("/%d/create_tickets", d.instance), `{"issueFilters":{}}`)
	call("change", http.MethodPatch, d.path("/%d", d.instance), `{"token":"`+token+`"}`)
	call("invalid", http.MethodPost, d.path(""), `{"instance":{"instanceType":"trello"},"token":"`+token+`"}`)
	call("list", http.MethodGet, d.path(""), "")
	err := filepath.WalkDir(d.Config.Data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		places[entry.Name()], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	places["log"] = log.text.Bytes()
	if len(places["log"]) == 0 || !bytes.Contains(places["palisade.db"], []byte("ticketing_instance")) {
		t.Errorf("the log has %d bytes, the files are %d", len(places["log"]), len(places))
	}
	pair := base64.StdEncoding.EncodeToString([]byte(j.User + ":" + token))
	for place, content := range places {
		for _, form := range []string{token, pair[:len(pair)-4], base64.StdEncoding.EncodeToString([]byte(token))[:20]} {
			if at := bytes.Index(content, []byte(form)); at >= 0 {
				t.Errorf("the token is in %s: %q", place, content[max(0, at-80):at+10])
			}
		}
	}
}
