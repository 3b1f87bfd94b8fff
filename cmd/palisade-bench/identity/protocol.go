package identity

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// protocolTool is the tool of results from the scanner protocol.
	protocolTool = "semgrep"
	// completePoll is the poll interval of /complete; the real client waits longer.
	completePoll = 50 * time.Millisecond
	// completeTimeout limits how long storing a scan may take.
	completeTimeout = time.Minute
	// crashWait is the time to wait for side effects of an aborted scan.
	crashWait = time.Second
)

// protocolScan sends a full scan of the main branch like `semgrep ci`. n counts the scans of the project.
func (s *Server) protocolScan(ctx context.Context, project string, step Step, n int) error {
	if err := s.declareAliases(ctx, step.Report); err != nil {
		return err
	}
	unique := sha256.Sum256(fmt.Append(nil, project, " ", n))
	create, err := json.Marshal(object{
		"project_metadata": object{
			"scan_environment": "git", "repository": project, "repo_display_name": project, "repo_url": nil, "branch": "refs/heads/main",
			"commit": hex.EncodeToString(unique[:20]), "commit_title": fmt.Sprintf("Commit %d", n), "commit_timestamp": "2026-11-20T21:57:51", "on": "push",
			"pull_request_id": nil, "is_full_scan": true,
		},
		"scan_metadata": object{
			"cli_version": "1.173.0", "unique_id": uuid(unique[:]), "requested_products": []string{"sast"}, "dry_run": false,
		},
		"project_config": object{"version": "v1"},
	})
	if err != nil {
		return err
	}
	var created struct{ Info struct{ ID int64 } }
	if err := s.call(ctx, http.MethodPost, "/api/cli/scans", create, &created); err != nil {
		return err
	}
	scan := fmt.Sprintf("/api/agent/scans/%d", created.Info.ID)
	results, err := json.Marshal(ciResults(step))
	if err != nil {
		return err
	}
	if step.Report.Failed {
		return s.breakOff(ctx, scan, results)
	}
	var sent struct {
		Errors []struct{ Message string }
		Task   string `json:"task_id"`
	}
	if err := s.call(ctx, http.MethodPost, scan+"/results", results, &sent); err != nil {
		return err
	}
	if len(sent.Errors) > 0 {
		return fmt.Errorf("%s/results: %s", scan, sent.Errors[0].Message)
	}
	return s.complete(ctx, scan, sent.Task, len(step.Report.Results))
}

// breakOff simulates a scanner that dies during the upload: it sends the first half of the results, and then the
// failure.
func (s *Server) breakOff(ctx context.Context, scan string, results []byte) error {
	if err := s.call(ctx, http.MethodPost, scan+"/results", results[:len(results)/2], nil); err == nil {
		return errors.New(scan + "/results: half a body was taken for results")
	}
	if err := s.call(ctx, http.MethodPost, scan+"/error", []byte(`{"exit_code":2,"stderr":""}`), nil); err != nil {
		return err
	}
	return pause(ctx, crashWait)
}

// declareAliases registers the aliases of rules on the server, because the protocol cannot transport them.
func (s *Server) declareAliases(ctx context.Context, r *Report) error {
	if len(r.Aliases) == 0 {
		return nil
	}
	var current struct{ Deployment struct{ ID int64 } }
	if err := s.call(ctx, http.MethodGet, "/api/agent/deployments/current", nil, &current); err != nil {
		return err
	}
	for _, now := range sortedKeys(r.Aliases) {
		body, err := json.Marshal(object{"tool": protocolTool, "name": r.Aliases[now], "canonical": now})
		if err != nil {
			return err
		}
		if err := s.call(ctx, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/aliases", current.Deployment.ID), body, nil); err != nil {
			return err
		}
	}
	return nil
}

// complete ends a scan and waits until it is stored.
func (s *Server) complete(ctx context.Context, scan, task string, findings int) error {
	body, err := json.Marshal(object{
		"exit_code": 0, "task_id": task, "final_attempt": false, "dependency_parser_errors": []string{},
		"stats": object{
			"findings": findings, "errors": []string{}, "total_time": 1.5, "unsupported_exts": object{}, "lockfile_scan_info": object{}, "parse_rate": object{},
		},
	})
	if err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < completeTimeout; {
		var answer struct{ Success bool }
		if err := s.call(ctx, http.MethodPost, scan+"/complete", body, &answer); err != nil || answer.Success {
			return err
		}
		if err := pause(ctx, completePoll); err != nil {
			return err
		}
	}
	return errors.New(scan + " is not complete after " + completeTimeout.String())
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func uuid(b []byte) string {
	return fmt.Sprintf("%x-%x-4%x-a%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// ciResults returns the body of /results.
func ciResults(step Step) object {
	searched := []string{}
	for _, file := range step.Tree.Paths() {
		if !step.Skipped[file] {
			searched = append(searched, file)
		}
	}
	return object{
		"findings": ciFindings(step), "ignores": []object{}, "token": nil, "searched_paths": searched, "renamed_paths": []string{},
		"skipped_paths": append([]string{}, sortedKeys(step.Skipped)...), "rule_ids": step.Report.ruleNames(), "contributions": []object{},
	}
}

// ruleNames returns the rules that ran, by their present names.
func (r *Report) ruleNames() []string {
	names := map[string]bool{}
	for _, rule := range r.rules(at(r.run, "tool", "driver")) {
		if name, ok := rule.(object)["id"].(string); ok {
			names[name] = true
		}
	}
	for _, result := range r.Results {
		names[result.Rule] = true
	}
	return sortedKeys(names)
}

// ciFindings adds the ids and hashes of the client to the results.
func ciFindings(step Step) []object {
	order := make([]int, len(step.Report.Results))
	for i := range order {
		order[i] = i
	}
	// The n-th equal match is the n-th in the file.
	slices.SortStableFunc(order, func(a, b int) int { return byPlace(step.Report.Results[a], step.Report.Results[b]) })
	list := make([]object, len(order))
	bySyntax, byMatch := map[string]int{}, map[string]int{}
	for _, i := range order {
		r := step.Report.Results[i]
		lines := step.Tree.matched(r)
		first, last := lines[0], lines[len(lines)-1]
		formula := strings.Join(strings.Fields(strings.Join(lines, "\n")), " ") // what the pattern matched, ignoring white space
		context := dedent(lines)
		syntax, match := tuple(r.Rule, r.File, context), tuple(formula, r.File, r.Rule)
		index := bySyntax[syntax]
		syntactic := sha256.Sum256(fmt.Append(nil, syntax, index))
		matchBased := sha512.Sum512([]byte(match))
		list[i] = object{
			"check_id": r.Rule, "path": r.File, "line": r.Line, "column": max(1, r.Column), "end_line": max(r.Line, r.EndLine), "end_column": max(1, r.EndCol),
			"message": r.Message, "severity": 1, "index": index, "commit_date": "2026-11-20T21:57:51", "metadata": object{}, "is_blocking": false,
			"syntactic_id":   hex.EncodeToString(syntactic[:16]),
			"match_based_id": fmt.Sprintf("%x_%d", matchBased, byMatch[match]),
			"hashes": object{
				"start_line_hash": digest(first), "end_line_hash": digest(last), "code_hash": digest(context), "pattern_hash": digest(formula),
			},
			"engine_kind": "OSS",
		}
		bySyntax[syntax]++
		byMatch[match]++
	}
	return list
}

// matched returns the lines of a result.
func (t *Tree) matched(r Result) []string {
	lines := t.Files[r.File]
	var texts []string
	for n := r.Line; n <= max(r.Line, r.EndLine) && n <= len(lines); n++ {
		texts = append(texts, lines[n-1].Text)
	}
	if len(texts) == 0 {
		return []string{""}
	}
	return texts
}

// dedent removes the indentation of the first line from all lines.
func dedent(lines []string) string {
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimPrefix(line, indent)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

func tuple(parts ...string) string { return fmt.Sprintf("%q", parts) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
