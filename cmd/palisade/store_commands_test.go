package main

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// storeCommand is a command that uses the store next to the server.
type storeCommand struct {
	// path names the command and its subcommands; args come after it.
	path string
	args []string
	// entry is its name in the audit trail; empty for a command that changes nothing.
	entry string
	// prepare is a statement that runs before the command.
	prepare string
	// exempt says why the command is not run here.
	exempt string
}

// storeCommands lists all of them. A command that changes the store leaves an entry in the audit trail, and requires
// the key.
func storeCommands(backup string) []storeCommand {
	return []storeCommand{
		{path: "palisade serve", exempt: "it is the server"},
		{path: "palisade doctor", exempt: "it needs free ports, and takes back what it tries (see services/doctor_write.go)"},
		{path: "palisade healthcheck", exempt: "it asks the server and does not open the store"},
		{path: "palisade migrate up", exempt: "it changes the schema, not what is in it, and comes before there is a trail or a key; goose_db_version tells when"},
		{path: "palisade migrate copy", exempt: "it needs PostgreSQL: see TestMoveToPostgresAndBack"},
		{path: "palisade migrate status"},
		{path: "palisade backup", args: []string{"--to", backup}},
		{path: "palisade restore", args: []string{"--from", backup, "--force"}, exempt: "it needs a place of its own: see below"},
		{path: "palisade token create", args: []string{"--name", "x", "--scopes", "web-api"}, entry: "token.create"},
		{path: "palisade token list"},
		{path: "palisade token hand-over", args: []string{"2"}, entry: "token.hand_over"},
		{path: "palisade token revoke", args: []string{"2"}, entry: "token.revoke"},
		{path: "palisade jwt", args: []string{"--email", "admin@localhost"}, entry: "jwt.mint"},
		{path: "palisade console-link", entry: "console_link.create"},
		{path: "palisade jwt rotate", entry: "jwt.rotate"},
		{path: "palisade user list"},
		{
			path: "palisade user link", args: []string{"--email", "ada@acme.test", "--subject", "1", "--oidc-issuer", "https://id.acme.test"}, entry: "user.link",
			prepare: "INSERT INTO users (email, name, created_at) VALUES ('ada@acme.test', 'Ada', 1)",
		},
		{path: "palisade user unlink", args: []string{"--email", "ada@acme.test"}, entry: "user.unlink"},
		{path: "palisade user tokens", args: []string{"--email", "ada@acme.test"}},
		{
			path: "palisade user role", args: []string{"--email", "ada@acme.test", "--role", "readonly"}, entry: "user.role",
			prepare: "INSERT INTO memberships (deployment_id, user_id, role, created_at) SELECT 1, id, 'ORG_ROLE_MEMBER', 1 FROM users WHERE email = 'ada@acme.test'",
		},
		{path: "palisade user remove", args: []string{"--email", "ada@acme.test"}, entry: "user.remove"},
		{path: "palisade audit list"},
		{path: "palisade audit export"},
		{path: "palisade audit verify"},
		{path: "palisade audit anchor"},
		{path: "palisade audit begin", entry: "audit.begin", prepare: "DELETE FROM audit_heads; DELETE FROM audit_entries"},
	}
}

// leaves calls each for every command with a data directory flag.
func leaves(c *cobra.Command, each func(path string)) {
	if c.Flags().Lookup("data") != nil {
		each(c.CommandPath())
	}
	for _, sub := range c.Commands() {
		leaves(sub, each)
	}
}

// rows counts the rows of all tables of a SQLite store.
func rows(t *testing.T, dir string) string {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "palisade.db")+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	list, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'river%' AND name NOT LIKE 'sqlite%' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	var out strings.Builder
	for _, name := range names {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %d\n", name, n)
	}
	return out.String()
}

// TestCommandsLeaveEntries: every command that changes the store leaves an entry with the actor and the host, and
// changes nothing without the key. A command that is missing in the table, or differs from it, fails here.
func TestCommandsLeaveEntries(t *testing.T) {
	dir := t.TempDir()
	startReadyServer(t, dir)
	environ := []string{"PALISADE_DATA=" + dir}
	backup := filepath.Join(t.TempDir(), "x.backup")
	commands := storeCommands(backup)
	known := map[string]bool{}
	for _, c := range commands {
		known[c.path] = true
	}
	leaves(newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard, now: time.Now}), func(path string) {
		if !known[path] {
			t.Errorf("%s works on the store: say in this table what it leaves in the audit trail", path)
		}
	})
	entries := func(environ []string, method string) int {
		t.Helper()
		got := palisade(t, "", environ, "audit", "export")
		if got.status != exitOK {
			t.Fatal(got.err)
		}
		host, _ := os.Hostname()
		n := 0
		for line := range strings.Lines(got.out) {
			if strings.Contains(line, `"method":"`+method+`"`) {
				wantParts(t, line, `"kind":"operator"`, host)
				n++
			}
		}
		return n
	}
	keyless := append([]string{"PALISADE_KEY_FILE=" + filepath.Join(t.TempDir(), "lost.key")}, environ...)
	for _, c := range commands {
		if c.exempt != "" {
			continue
		}
		if c.prepare != "" {
			tamper(t, dir, c.prepare)
		}
		args := append(strings.Fields(c.path)[1:], c.args...)
		before := rows(t, dir)
		if c.entry != "" {
			if got := palisade(t, "", keyless, args...); got.status == exitOK || got.out != "" || rows(t, dir) != before {
				t.Errorf("%s without the key: status %d %s%s", c.path, got.status, got.out, got.err)
			}
		}
		if got := palisade(t, "", environ, args...); got.status != exitOK {
			t.Errorf("%s: %s", c.path, got.err)
		}
		if c.entry == "" {
			if after := rows(t, dir); after != before {
				t.Errorf("%s changes the store:\n%s\nwas\n%s", c.path, after, before)
			}
		} else if n := entries(environ, c.entry); n != 1 {
			t.Errorf("%s leaves %d entries %s", c.path, n, c.entry)
		}
	}
	other := []string{"PALISADE_DATA=" + t.TempDir(), "PALISADE_KEY_FILE=" + filepath.Join(dir, "palisade.key")}
	if got := palisade(t, "", other, "restore", "--from", backup); got.status != exitOK || entries(other, "restore") != 1 {
		t.Errorf("restore: %s%s", got.out, got.err)
	}
	for _, where := range [][]string{environ, other} {
		if got := palisade(t, "", where, "audit", "verify"); got.status != exitOK {
			t.Errorf("the trail: %s%s", got.out, got.err)
		}
	}
}
