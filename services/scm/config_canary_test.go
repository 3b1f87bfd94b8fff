package scm_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// configCanary is an access token that must not leak.
const configCanary = "cAnArY8d2b6-scm-token"

// TestConfigCanaries sends access tokens in all requests, to working hosts and to hosts that echo their input. Then it
// searches for the tokens, and for webhook secrets, in all responses, logs and stored data.
func TestConfigCanaries(t *testing.T) {
	for name, database := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return storetest.Postgres(t) },
	} {
		if !testrun.On(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			log := &configLog{}
			places := map[string][]byte{}
			var secrets []string
			t.Run("server", func(t *testing.T) {
				url := database(t)
				log.TB = t
				server := apitest.Start(log, func(c *config.Config) { c.Database, c.LogLevel, c.EgressAllow = url, "debug", "127.0.0.1" })
				s := configCaller{server, scmv1.NewScmServiceClient(server.Conn), scmv1.NewScmSubscriptionsServiceClient(server.Conn)}
				h := hosttest.NewGitHub(t)
				h.Token = configCanary
				for i, answer := range sendConfigCanaries(t, s, h) {
					places[fmt.Sprintf("answer %d", i)] = []byte(answer)
				}
				for _, hook := range h.Hooks() {
					secrets = append(secrets, hook.Secret)
				}
				dumpConfigTables(t, s, places)
				readConfigFiles(t, s.Config.Data, places) // a write-ahead log exists while the server runs
			})
			places["log"] = log.bytes()
			for _, needed := range []string{"log", "table scm_configs", "table audit_entries", "table river_job"} {
				if len(places[needed]) == 0 {
					t.Errorf("nothing was recorded of %s", needed)
				}
			}
			if len(secrets) == 0 {
				t.Error("no webhook has a secret")
			}
			for _, value := range append(secrets, configCanary) {
				searchConfigs(t, places, value)
			}
		})
	}
}

// searchConfigs reports each place that contains a value in plain text, hexadecimal or base64.
func searchConfigs(t *testing.T, places map[string][]byte, value string) {
	t.Helper()
	forms := [][]byte{[]byte(value), []byte(hex.EncodeToString([]byte(value)))}
	for shift := range 3 {
		// Compare only the characters that do not depend on the surrounding bytes.
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, shift), value...))
		forms = append(forms, []byte(encoded[4:20]))
	}
	for place, content := range places {
		for _, form := range forms {
			if at := bytes.Index(content, form); at >= 0 {
				t.Errorf("a credential is in %s: …%q…", place, content[max(0, at-80):min(len(content), at+40)])
			}
		}
	}
}

// sendConfigCanaries sends the access token and returns all answers.
func sendConfigCanaries(t *testing.T, s configCaller, h *hosttest.GitHub) (answers []string) {
	t.Helper()
	do := func(token, method, path, body string) {
		answer := s.Do(t, token, method, path, body)
		answers = append(answers, fmt.Sprint(answer.Status, answer.Header, answer.Body))
	}
	create := func(namespace, more string) string {
		return fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":%q,"baseUrl":%q,"accessToken":%q%s}`, namespace, h.URL, configCanary, more)
	}
	do(s.Token, http.MethodPost, s.path(""), create("acme", `,"subscribe":true`))
	do(s.Token, http.MethodPost, s.path(""), create("acme", ""))
	do(s.Token, http.MethodPost, s.path(""), create("globex", `,"subscribe":true,"scmConfigId":"1"`))
	do(s.Token, http.MethodPost, s.path(""), create("no namespace", ""))
	do(s.Token, http.MethodPost, s.path(""), strings.TrimSuffix(create("acme", ""), "}"))
	do(s.Token, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITHUB","namespace":"acme","accessToken":["`+configCanary+`"]}`)
	do(s.Token, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITHUB","namespace":"acme","accessToken":"`+strings.Repeat(configCanary, 300)+`"}`)
	do(s.Token, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":"acme","baseUrl":"https://x:`+configCanary+`@git.acme.test"}`)
	do(s.Token, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":"acme","baseUrl":"https://git.acme.test/?token=`+configCanary+`"}`)
	member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
	other := s.AddTenant(t, "umbrella")
	for _, token := range []string{s.Token, member, other.Token, ""} {
		do(token, http.MethodPatch, s.path("/1"), `{"accessToken":"`+configCanary+`"}`)
		do(token, http.MethodPatch, s.path("/999"), `{"accessToken":"`+configCanary+`"}`)
		do(token, http.MethodGet, s.path("/1/check"), "")
		do(token, http.MethodGet, s.path(""), "")
		do(token, http.MethodPost, s.path("/search"), "{}")
		do(token, http.MethodPut, s.subscriptions(1, ""), "")
		do(token, http.MethodPost, s.subscriptions(1, "/rotate_secret"), "")
		do(token, http.MethodPost, s.path("/1/_sync"), `{"debug":true}`)
	}
	h.Answer(hosttest.Status(500, `{"message":"internal error"}`))
	do(s.Token, http.MethodGet, s.path("/1/check"), "")
	h.Answer(hosttest.Status(200, `<html>`))
	do(s.Token, http.MethodGet, s.path("/1/check"), "")
	do(s.Token, http.MethodPut, s.subscriptions(1, ""), "")
	h.Answer(nil)
	do(s.Token, http.MethodPatch, s.path("/1"), `{"namespace":"octavia"}`) // leaves the sealed token in a job
	do(s.Token, http.MethodPatch, s.path("/1"), `{"namespace":"acme","subscribe":true}`)
	for _, token := range []string{s.Token, member, ""} {
		text := configCanary
		patched, err := s.configs.PatchScmConfig(s.Context(t, token), &scmv1.PatchScmConfigRequest{DeploymentId: s.DeploymentID, ConfigId: 1, AccessToken: &text})
		answers = append(answers, prototext.Format(patched), prototext.Format(status.Convert(err).Proto()))
	}
	return answers
}

// dumpConfigTables reads each column of each table.
func dumpConfigTables(t *testing.T, s configCaller, places map[string][]byte) {
	t.Helper()
	db, _ := s.Store.DB()
	tables := `SELECT name FROM sqlite_schema WHERE type = 'table'`
	if s.Store.Postgres() {
		tables = `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'`
	}
	for _, table := range bytes.Fields(configRows(t, db, tables)) {
		query := `SELECT * FROM ` + string(table)
		if s.Store.Postgres() {
			query = `SELECT t::text FROM ` + string(table) + ` t`
		}
		places["table "+string(table)] = configRows(t, db, query)
	}
}

// configRows reads all columns of all rows as text.
func configRows(t *testing.T, db *sql.DB, query string) (out []byte) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		values := make([]sql.RawBytes, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := found.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		for _, value := range values {
			out = append(append(out, value...), ' ')
		}
		out = append(out, '\n')
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// readConfigFiles reads each file of the data directory.
func readConfigFiles(t *testing.T, dir string, places map[string][]byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		places["file "+entry.Name()] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// configLog records the server's log.
type configLog struct {
	testing.TB
	mu   sync.Mutex
	text bytes.Buffer
}

// Log records a line. It does not write to the test's output, because it would dominate it.
func (l *configLog) Log(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, args...)
}

func (l *configLog) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}
