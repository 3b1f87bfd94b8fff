package main

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pocketBaseSource is the main package that is built with PocketBase: the collection cannot be made without a program
// or a browser.
//
//go:embed peers/pocketbase.go.txt
var pocketBaseSource []byte

// buildPocketBase builds the program in a module of its own and returns its path.
func (p *peers) buildPocketBase(ctx context.Context, dir string) (string, error) {
	p.progress("build PocketBase %s", p.o.version)
	module := filepath.Join(dir, "pocketbase")
	if err := os.Mkdir(module, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(module, "main.go"), pocketBaseSource, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(module, "pocketbase")
	for _, arguments := range [][]string{
		{"mod", "init", "peer"}, {"get", "github.com/pocketbase/pocketbase@" + p.o.version}, {"mod", "tidy"}, {"build", "-o", program, "."},
	} {
		command := exec.CommandContext(ctx, "go", arguments...)
		command.Dir = module
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, output)
		}
	}
	return program, nil
}

// usePalisade is the server that runs already.
func (p *peers) usePalisade() {
	p.palisade = newPeer("Palisade", p.bench.server, p.token)
	p.palisade.list = p.client.findingsPath(theQuery)
	p.palisade.deep = p.client.findingsPath(pageQuery{Status: "open", Page: p.deepNumber})
	known := map[int]bool{}
	p.palisade.insert = func(ctx context.Context, report []byte, round int) error {
		answer, err := p.client.upload(ctx, "bench/peer-"+strconv.Itoa(round), "main", "", report)
		stored := answer.Created
		if known[round] {
			stored = answer.Unchanged
		}
		if known[round] = true; err == nil && stored != p.results {
			err = fmt.Errorf("upload of %d results: got %+v", p.results, answer)
		}
		return err
	}
}

// startPlainReader serves bytes that were made before, from our own database: no program can do less.
func (p *peers) startPlainReader(ctx context.Context) error {
	launch := func(q pageQuery) (*peer, error) {
		settings := p.settings
		settings.Query = q
		server, err := start(ctx, rolePlain, settings, p.stderr)
		if err != nil {
			return nil, err
		}
		return newPeer("plain reader", server, ""), nil
	}
	var err error
	if p.file, err = launch(theQuery); err != nil {
		return err
	}
	if p.fileDeep, err = launch(pageQuery{Status: "open"}); err != nil {
		return err
	}
	p.file.list = "/?page_size=" + strconv.Itoa(pageSize)
	p.fileDeep.deep = p.file.list + "&offset=" + strconv.Itoa(p.deepNumber*pageSize)
	return nil
}

// startReference copies the findings into the plain program's file and starts it.
func (p *peers) startReference(ctx context.Context, dir string) error {
	p.progress("copy the findings for the plain program")
	file := referenceFile(dir)
	if err := execFile(ctx, file, referenceSchema); err != nil {
		return err
	}
	if err := p.copyInto(ctx, file, "f.id"); err != nil {
		return err
	}
	server, err := start(ctx, roleReference, childSettings{Data: dir}, p.stderr)
	if err != nil {
		return err
	}
	p.plain = newPeer("plain program", server, "")
	p.plain.list = "/findings?status=open&severities=high"
	p.plain.deep = "/findings?status=open&page=" + strconv.Itoa(p.deepNumber)
	p.plain.insert = func(ctx context.Context, report []byte, round int) error {
		return p.plain.post(ctx, "/reports?project=bench/peer-"+strconv.Itoa(round), report)
	}
	return nil
}

// startPocketBase lets PocketBase make its collection, copies the findings into it, and starts it again.
func (p *peers) startPocketBase(ctx context.Context, program, data string) error {
	launch := func() (*child, error) {
		return startCommand("pocketbase", exec.CommandContext(context.WithoutCancel(ctx), program, data), p.stderr)
	}
	server, err := launch()
	if err != nil {
		return err
	}
	if err := server.stop(); err != nil {
		return err
	}
	p.progress("copy the findings for PocketBase")
	if err := p.copyInto(ctx, filepath.Join(data, "data.db"), "printf('%015d', f.id)"); err != nil {
		return err
	}
	if server, err = launch(); err != nil {
		return err
	}
	p.pocket = newPeer("PocketBase", server, server.ready.Token)
	const records = "/api/collections/findings/records?perPage=100&skipTotal=1&sort=-relevant_since,-id&filter="
	p.pocket.list = records + url.QueryEscape("issue_type='sast' && status='open' && severity='high'")
	p.pocket.deep = records + url.QueryEscape("issue_type='sast' && status='open'") + "&page=" + strconv.Itoa(p.deepNumber+1)
	p.pocket.body = pocketBaseBatch
	p.pocket.insert = func(ctx context.Context, batch []byte, _ int) error { return p.pocket.post(ctx, "/api/batch", batch) }
	return nil
}

// copied are the columns of the peers, and what they are in our tables.
const copied = `INSERT INTO findings (id, project, rule, ref, tool, fingerprint, issue_type, severity, state, triage_state, status, relevant_since, created_at, content)
	SELECT %s, p.name, r.name, f.ref, f.tool, f.fingerprint, f.issue_type, f.severity, f.state, f.triage_state, f.status, f.relevant_since, f.created_at,
		json_remove(CAST(b.body AS TEXT), '$.id', '$.ref', '$.state', '$.status', '$.severity', '$.triage_state', '$.created_at', '$.relevant_since', '$.rule_name')
	FROM ours.findings f JOIN ours.projects p ON p.id = f.project_id JOIN ours.rules r ON r.id = f.rule_id JOIN ours.bench_pages b ON b.id = f.id`

// copyInto copies our findings into a file of a peer.
func (p *peers) copyInto(ctx context.Context, file, id string) error {
	attach := "ATTACH '" + strings.ReplaceAll(filepath.Join(p.settings.Data, sqliteFile), "'", "''") + "' AS ours; "
	return execFile(ctx, file, attach+fmt.Sprintf(copied, id)+"; PRAGMA analysis_limit=1000; ANALYZE main; PRAGMA main.wal_checkpoint(TRUNCATE)")
}

// execFile runs statements on one connection to an SQLite file.
func execFile(ctx context.Context, file, statements string) (err error) {
	db, err := sql.Open("sqlite3", sqliteDSN(file, "NORMAL"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, statements)
	return errors.Join(err, db.Close())
}

// post sends JSON and reads all of the answer.
func (o *peer) post(ctx context.Context, path string, body []byte) error {
	response, err := o.client.send(ctx, http.MethodPost, path, "", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// pocketBaseBatch makes the records of a report, or what updates those of the same report.
func pocketBaseBatch(report []byte, round int, again bool) ([]byte, error) {
	method := http.MethodPost
	if again {
		method = http.MethodPut // an upsert
	}
	var read plainReport
	if err := json.Unmarshal(report, &read); err != nil {
		return nil, err
	}
	var requests []object
	for _, run := range read.Runs {
		for i := range run.Results {
			result := &run.Results[i]
			print := result.fingerprint()
			requests = append(requests, object{"method": method, "url": "/api/collections/findings/records", "body": object{
				"id": print[:15], "project": "bench/peer-" + strconv.Itoa(round), "rule": result.RuleID, "ref": "refs/heads/main", "tool": run.Tool.Driver.Name,
				"fingerprint": print, "issue_type": "sast", "severity": "high", "state": "unresolved", "triage_state": "untriaged", "status": "open",
				"relevant_since": int64(2e15), "created_at": int64(2e15), "content": result,
			}})
		}
	}
	return json.Marshal(object{"requests": requests})
}

// checkSame makes sure that all programs list the same findings.
func (p *peers) checkSame(ctx context.Context) error {
	for _, path := range []func(*peer) string{func(o *peer) string { return o.list }, func(o *peer) string { return o.deep }} {
		var want []int64
		for _, one := range append(p.all, p.file, p.fileDeep) {
			if path(one) == "" {
				continue
			}
			ids, size, err := one.listed(ctx, path(one))
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			if path(one) == one.list {
				one.pageBytes = size
			}
			if want == nil {
				want = ids
			}
			if len(ids) != pageSize || !slices.Equal(ids, want) {
				return fmt.Errorf("%s lists %d findings at %s, which are not those of Palisade", one.name, len(ids), path(one))
			}
		}
	}
	return nil
}

// listed returns the ids on a page, and its size in bytes.
func (o *peer) listed(ctx context.Context, path string) (ids []int64, size int, err error) {
	response, err := o.client.send(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, err
	}
	type listed struct {
		ID json.RawMessage `json:"id"` // PocketBase's are text
	}
	var page struct {
		Findings []listed `json:"findings"`
		Items    []listed `json:"items"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, 0, err
	}
	for _, one := range append(page.Findings, page.Items...) {
		id, err := strconv.ParseInt(strings.Trim(string(one.ID), `"`), 10, 64)
		if err != nil {
			return nil, 0, err
		}
		ids = append(ids, id)
	}
	return ids, len(body), nil
}
