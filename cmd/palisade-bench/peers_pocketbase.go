package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pocketPassword is the password of a superuser on loopback, in a temporary directory.
const pocketUser, pocketPassword = "bench@example.com", "only-for-the-bench"

// buildPocketBase builds the program as shipped, in its own module, and returns its path.
func (b *bench) buildPocketBase(ctx context.Context) (string, error) {
	b.progress("build PocketBase %s", pocketVersion)
	command := exec.CommandContext(ctx, "go", "install", "github.com/pocketbase/pocketbase/examples/base@"+pocketVersion)
	command.Env = append(os.Environ(), "GOBIN="+b.dir, "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install PocketBase: %w\n%s", err, output)
	}
	return filepath.Join(b.dir, "base"), nil
}

// servePocketBase creates the collection, copies the findings into it, and restarts the program.
func (b *bench) servePocketBase(ctx context.Context, program string) (_ *peer, stop func() error, err error) {
	data := filepath.Join(b.dir, "pocketbase")
	create := exec.CommandContext(ctx, program, "superuser", "upsert", pocketUser, pocketPassword, "--dir", data)
	if output, err := create.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("PocketBase: %w\n%s", err, output)
	}
	o, stop, err := b.launchPocketBase(ctx, program, data)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(o.setUpPocketBase(ctx), stop()); err != nil {
		return nil, nil, err
	}
	b.progress("copy the findings for PocketBase")
	db, err := sql.Open("sqlite3", sqliteDSN(filepath.Join(data, "data.db"), "NORMAL"))
	if err != nil {
		return nil, nil, err
	}
	from := strings.ReplaceAll(filepath.Join(b.settings.Data, sqliteFile), "'", "''")
	_, err = db.ExecContext(ctx, "ATTACH '"+from+"' AS ours; "+pocketCopy+"; PRAGMA analysis_limit=1000; ANALYZE main; PRAGMA main.wal_checkpoint(TRUNCATE)")
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, nil, err
	}
	return b.launchPocketBase(ctx, program, data)
}

// launchPocketBase starts the program and signs in as superuser, which bypasses the rules of the collection.
func (b *bench) launchPocketBase(ctx context.Context, program, data string) (*peer, func() error, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return nil, nil, err
	}
	address := listener.Addr().String()
	command := exec.CommandContext(ctx, program, "serve", "--http", address, "--dir", data)
	command.Stderr = b.stderr
	if err := errors.Join(listener.Close(), command.Start()); err != nil {
		return nil, nil, err
	}
	stop := func() error { return errors.Join(command.Process.Signal(os.Interrupt), command.Wait()) }
	anonymous, began := newClient(address, "", 1), time.Now()
	var signedIn struct{ Token string }
	for err = errors.New("not tried"); err != nil; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > stopTimeout {
			return nil, nil, errors.Join(err, stop())
		}
		err = anonymous.call(ctx, http.MethodPost, "/api/collections/_superusers/auth-with-password",
			object{"identity": pocketUser, "password": pocketPassword}, &signedIn)
	}
	o := newPeer("PocketBase", process(command.Process.Pid), address, signedIn.Token)
	const records = "/api/collections/findings/records?perPage=100&skipTotal=1&sort=-relevant_since,-id&filter="
	o.list = records + url.QueryEscape("issue_type='sast' && status='open' && severity='high'")
	o.deep = func(page int) string {
		return records + url.QueryEscape("issue_type='sast' && status='open'") + "&page=" + strconv.Itoa(page+1)
	}
	return o, stop, nil
}

// setUpPocketBase creates the collection with our columns and the indexes of our lists.
func (o *peer) setUpPocketBase(ctx context.Context) error {
	var fields []object
	for _, name := range []string{"project", "rule", "ref", "tool", "fingerprint", "issue_type", "severity", "state", "triage_state", "status"} {
		fields = append(fields, object{"type": "text", "name": name, "max": 1000})
	}
	fields = append(fields, object{"type": "number", "name": "relevant_since"}, object{"type": "number", "name": "created_at"},
		object{"type": "json", "name": "content", "maxSize": 1 << 20})
	indexes := []string{"CREATE UNIQUE INDEX findings_by_identity ON findings (project, fingerprint, ref)"}
	for i, columns := range []string{
		"issue_type, relevant_since, id, status", "issue_type, status, relevant_since, id", "issue_type, status, severity, relevant_since, id",
		"issue_type, severity, relevant_since, id", "project, issue_type, relevant_since, id", "ref, issue_type, relevant_since, id", "rule, relevant_since, id",
	} {
		indexes = append(indexes, fmt.Sprintf("CREATE INDEX findings_list_%d ON findings (%s)", i, columns))
	}
	return o.client.call(ctx, http.MethodPost, "/api/collections", object{"name": "findings", "type": "base", "fields": fields, "indexes": indexes}, nil)
}

// pocketCopy copies our tables into the collection.
const pocketCopy = `INSERT INTO findings (id, project, rule, ref, tool, fingerprint, issue_type, severity, state, triage_state, status, relevant_since, created_at, content)
	SELECT printf('%015d', f.id), p.name, r.name, f.ref, f.tool, f.fingerprint, f.issue_type, f.severity, f.state, f.triage_state, f.status, f.relevant_since, f.created_at,
		json_remove(CAST(b.body AS TEXT), '$.id', '$.ref', '$.state', '$.status', '$.severity', '$.triage_state', '$.created_at', '$.relevant_since', '$.rule_name')
	FROM ours.findings f JOIN ours.projects p ON p.id = f.project_id JOIN ours.rules r ON r.id = f.rule_id JOIN ours.bench_pages b ON b.id = f.id`
