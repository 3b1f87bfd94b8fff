package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"time"
)

// reference is the program that somebody writes in an afternoon: net/http, database/sql and structs of encoding/json.
// It lists findings with OFFSET, and takes a SARIF report whole, each result upserted by its fingerprint. It has no
// callers, history, rules or triage, and closes nothing.
type reference struct{ db *sql.DB }

// referenceSchema has the columns and indexes that PocketBase gets, too.
const referenceSchema = `CREATE TABLE findings (id INTEGER PRIMARY KEY, project TEXT, rule TEXT, ref TEXT, tool TEXT, fingerprint TEXT, issue_type TEXT,
	severity TEXT, state TEXT, triage_state TEXT, status TEXT, relevant_since INTEGER, created_at INTEGER, content TEXT);
CREATE UNIQUE INDEX findings_by_identity ON findings (project, fingerprint, ref);
CREATE INDEX findings_list ON findings (issue_type, relevant_since, id, status);
CREATE INDEX findings_list_status ON findings (issue_type, status, relevant_since, id);
CREATE INDEX findings_list_status_severity ON findings (issue_type, status, severity, relevant_since, id);
CREATE INDEX findings_list_severity ON findings (issue_type, severity, relevant_since, id);
CREATE INDEX findings_list_project ON findings (project, issue_type, relevant_since, id);
CREATE INDEX findings_list_ref ON findings (ref, issue_type, relevant_since, id);
CREATE INDEX findings_list_rule ON findings (rule, relevant_since, id)`

// referenceFinding is a finding as it is listed.
type referenceFinding struct {
	ID            int64           `json:"id"`
	Project       string          `json:"project"`
	Rule          string          `json:"rule"`
	Ref           string          `json:"ref"`
	Tool          string          `json:"tool"`
	Fingerprint   string          `json:"fingerprint"`
	IssueType     string          `json:"issue_type"`
	Severity      string          `json:"severity"`
	State         string          `json:"state"`
	TriageState   string          `json:"triage_state"`
	Status        string          `json:"status"`
	RelevantSince int64           `json:"relevant_since"`
	CreatedAt     int64           `json:"created_at"`
	Content       json.RawMessage `json:"content"`
}

func referenceFile(dir string) string { return filepath.Join(dir, "reference.db") }

func serveReference(ctx context.Context, s childSettings) (serving, error) {
	db, err := sql.Open("sqlite3", sqliteDSN(referenceFile(s.Data), "NORMAL"))
	if err != nil {
		return serving{}, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	r := &reference{db: db}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /findings", answering(r.list))
	mux.HandleFunc("POST /reports", answering(r.upload))
	return serveHandler(ctx, mux)
}

// answering writes what a handler returns as JSON.
func answering(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := handle(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client counts what it gets
	}
}

func (s *reference) list(r *http.Request) (any, error) {
	query := r.URL.Query()
	page, _ := strconv.Atoi(query.Get("page"))
	where, arguments := "issue_type = 'sast' AND status = ?", []any{query.Get("status")}
	if severity := query.Get("severities"); severity != "" {
		where, arguments = where+" AND severity = ?", append(arguments, severity)
	}
	rows, err := s.db.QueryContext(r.Context(), `SELECT id, project, rule, ref, tool, fingerprint, issue_type, severity, state, triage_state, status, relevant_since,
		created_at, content FROM findings WHERE `+where+" ORDER BY relevant_since DESC, id DESC LIMIT ? OFFSET ?", append(arguments, pageSize, page*pageSize)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []referenceFinding
	for rows.Next() {
		var f referenceFinding
		if err := rows.Scan(&f.ID, &f.Project, &f.Rule, &f.Ref, &f.Tool, &f.Fingerprint, &f.IssueType, &f.Severity, &f.State, &f.TriageState, &f.Status,
			&f.RelevantSince, &f.CreatedAt, (*[]byte)(&f.Content)); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return map[string]any{"findings": list}, rows.Err()
}

// plainReport is as much of SARIF as the reference reads.
type plainReport struct {
	Runs []struct {
		Tool struct {
			Driver struct {
				Name  string `json:"name"`
				Rules []struct {
					ID         string         `json:"id"`
					Properties map[string]any `json:"properties"`
				} `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []plainResult `json:"results"`
	} `json:"runs"`
}

type plainResult struct {
	RuleID  string `json:"ruleId"`
	Message struct {
		Text string `json:"text"`
	} `json:"message"`
	Locations []struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine   int `json:"startLine"`
				EndLine     int `json:"endLine"`
				StartColumn int `json:"startColumn"`
				EndColumn   int `json:"endColumn"`
				Snippet     struct {
					Text string `json:"text"`
				} `json:"snippet"`
			} `json:"region"`
		} `json:"physicalLocation"`
	} `json:"locations"`
}

// fingerprint names what a result is about.
func (r *plainResult) fingerprint() string {
	hash := sha256.New()
	hash.Write([]byte(r.RuleID))
	for _, l := range r.Locations {
		hash.Write([]byte(l.Physical.Artifact.URI + "\x00" + l.Physical.Region.Snippet.Text))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

func (s *reference) upload(r *http.Request) (_ any, err error) {
	var report plainReport
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		return nil, err
	}
	tx, err := s.db.BeginTx(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	statement, err := tx.PrepareContext(r.Context(), `INSERT INTO findings (project, rule, ref, tool, fingerprint, issue_type, severity, state, triage_state, status,
		relevant_since, created_at, content) VALUES (?, ?, 'refs/heads/main', ?, ?, 'sast', ?, 'unresolved', 'untriaged', 'open', ?, ?, ?)
		ON CONFLICT (project, fingerprint, ref) DO UPDATE SET content = excluded.content, severity = excluded.severity
		WHERE content <> excluded.content OR severity <> excluded.severity`)
	if err != nil {
		return nil, err
	}
	defer statement.Close()
	stored, now, project := 0, time.Now().UnixMicro(), r.URL.Query().Get("project")
	for _, run := range report.Runs {
		severities := map[string]string{}
		for _, rule := range run.Tool.Driver.Rules {
			severities[rule.ID], _ = rule.Properties["security-severity"].(string)
		}
		for i := range run.Results {
			result := &run.Results[i]
			content, err := json.Marshal(result)
			if err != nil {
				return nil, err
			}
			if _, err := statement.ExecContext(r.Context(), project, result.RuleID, run.Tool.Driver.Name, result.fingerprint(), severities[result.RuleID], now, now, content); err != nil {
				return nil, err
			}
			stored++
		}
	}
	if stored == 0 {
		return nil, errors.New("the report has no results")
	}
	return map[string]int{"stored": stored}, tx.Commit()
}
