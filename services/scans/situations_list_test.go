package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent/scan"
)

const (
	runEval = "app/run.py:12 eval"
	runExec = "app/run.py:30 exec"
	oldHash = "lib/old.py:7 md5"
)

// fullSituations are full scans of the main branch.
var fullSituations = []situation{
	{"the first scan", func(s *situationRun) {
		answer := s.full(found(runEval, runExec))
		s.want(mainRef, "app/run.py:12 open", "app/run.py:30 open")
		if answer["success"] != true || answer["app_block_override"] != false {
			s.t.Errorf("%v", answer)
		}
	}},
	{"a scan without findings", func(s *situationRun) {
		s.full(found())
		s.want(mainRef)
	}},
	{"the same scan again makes no event", func(s *situationRun) {
		s.full(found(runEval, oldHash))
		before := s.events()
		s.full(found(runEval, oldHash))
		if n := s.events() - before; n != 0 {
			s.t.Errorf("%d events", n)
		}
	}},
	{"what is gone from a scanned file is fixed", func(s *situationRun) {
		s.full(found(runEval, runExec))
		s.full(found(runExec))
		s.want(mainRef, "app/run.py:12 fixed", "app/run.py:30 open")
	}},
	{"what comes back is the same finding", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found())
		s.full(found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"code that moves keeps its finding", func(s *situationRun) {
		s.full(found(runEval, runExec))
		s.full(found("app/run.py:112 eval", "app/run.py:130 exec"))
		s.want(mainRef, "app/run.py:112 open", "app/run.py:130 open")
	}},
	{"another copy of known code is another finding", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found(runEval, "app/run.py:50 eval"))
		s.want(mainRef, "app/run.py:12 open", "app/run.py:50 open")
	}},
	{"a renamed file keeps its findings and decisions", func(s *situationRun) {
		s.full(found(runEval, oldHash))
		s.ignore("app/run.py:12")
		s.full(found("app/main.py:12 eval", oldHash).searching("app/main.py", "lib/hash.py", "lib/old.py"))
		s.want(mainRef, "app/main.py:12 ignored", "lib/old.py:7 open")
	}},
	{"a rule that no longer runs removes its findings", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found().with(with([]any{"acme.generic.weak-hash"}, "rule_ids")))
		s.want(mainRef, "app/run.py:12 removed")
	}},
	{"a finding of the previous version of a rule closes nothing", func(s *situationRun) {
		s.full(found(runEval, oldHash))
		s.full(found(runEval).with(func(body object) {
			with("previous-scan", "metadata", "semgrep.dev", "src")(body["findings"].([]any)[0].(object))
		}))
		s.want(mainRef, "app/run.py:12 open", "lib/old.py:7 open")
	}},
	{"a comment in the code mutes", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found().ignoring(runEval))
		s.want(mainRef, "app/run.py:12 ignored")
	}},
	{"a removed comment unmutes", func(s *situationRun) {
		s.full(found().ignoring(runEval))
		s.full(found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a skipped file keeps its findings", func(s *situationRun) {
		s.full(found(runEval, oldHash))
		s.full(found(runEval).searching("app/run.py", "lib/hash.py").with(with([]any{"lib/old.py"}, "skipped_paths")))
		s.want(mainRef, "app/run.py:12 open", "lib/old.py:7 open")
	}},
	{"a scan of another product closes nothing", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found(), with([]any{"secrets"}, "scan_metadata", "requested_products"))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a scan of some rules closes nothing", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found(), with([]any{"acme.other"}, "scan_metadata", "partial_scan_rule_ids"))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a scan in which no rule ran closes nothing", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found().with(with([]any{}, "rule_ids")))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a decision stays while the code is there", func(s *situationRun) {
		s.full(found(runEval))
		s.ignore("app/run.py:12")
		s.full(found("app/run.py:14 eval"))
		s.want(mainRef, "app/run.py:14 ignored")
	}},
	{"the scanner gets the ids of ignored findings", func(s *situationRun) {
		s.full(found(runEval))
		s.ignore("app/run.py:12")
		unique := uuid.NewString()
		s.begin(with(unique, "scan_metadata", "unique_id"))
		config := s.ok(s.t, http.MethodGet, cliV2+"/"+unique+"/config", "")
		if got := fmt.Sprint(at(config, "config", "triage_ignored_match_based_ids")); got != "["+digest("acme.python.eval", "app/run.py", "eval")+"_0]" {
			s.t.Errorf("%s", got)
		}
	}},
	{"old numbers and words of severities", func(s *situationRun) {
		s.full(found(runEval, runExec).with(func(body object) {
			list := body["findings"].([]any)
			list[0].(object)["severity"], list[1].(object)["severity"] = "WARNING", 3
		}))
		s.want(mainRef, "app/run.py:12 open", "app/run.py:30 open")
	}},
	{"directories of a monorepo are projects", func(s *situationRun) {
		s.full(found(runEval))
		s.full(found(), with(s.project+"/web", "project_metadata", "repo_display_name"))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"fields of a later version are ignored", func(s *situationRun) {
		s.full(found(runEval).with(with(object{"a": []any{1, nil}}, "new_field")), with("x", "scan_metadata", "new_field"))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"null instead of lists", func(s *situationRun) {
		s.full(found(runEval).with(with(nil, "ignores"), with(nil, "renamed_paths"), with(nil, "contributions")))
		s.want(mainRef, "app/run.py:12 open")
	}},
}

// diffSituations are scans of pull requests.
var diffSituations = []situation{
	{"a pull request has its own findings", func(s *situationRun) {
		s.full(found(oldHash))
		s.diff(found(runEval).searching("app/run.py"))
		s.want(mainRef, "lib/old.py:7 open")
		s.want(pullRef, "app/run.py:12 open")
	}},
	{"a pull request closes nothing of its base", func(s *situationRun) {
		s.full(found(runEval))
		s.diff(found().searching("app/run.py"))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a commit fixes what an earlier one of the pull request added", func(s *situationRun) {
		s.full(found())
		s.diff(found(runEval).searching("app/run.py"))
		s.diff(found().searching("app/run.py"))
		s.want(pullRef, "app/run.py:12 fixed")
	}},
	{"a file that the diff scan did not search keeps its findings", func(s *situationRun) {
		s.full(found())
		s.diff(found(runEval, oldHash).searching("app/run.py", "lib/old.py"))
		s.diff(found(runEval).searching("app/run.py").with(with([]any{"lib/old.py"}, "skipped_paths")))
		s.want(pullRef, "app/run.py:12 open", "lib/old.py:7 open")
	}},
	{"a file that a pull request renames is not open twice", func(s *situationRun) {
		s.full(found())
		s.diff(found(runEval).searching("app/run.py"))
		s.diff(found("app/main.py:12 eval").searching("app/main.py").with(with([]any{"app/run.py"}, "renamed_paths")))
		s.want(pullRef, "app/main.py:12 open")
	}},
	{"a merged finding keeps the decision of the pull request", func(s *situationRun) {
		s.full(found())
		s.full(found(runEval), with("topic", "project_metadata", "branch"))
		s.full(found(runEval))
		s.ignore("app/run.py:12")
		s.want("refs/heads/topic", "app/run.py:12 ignored")
	}},
	{"GitLab names the source branch of a merge request", func(s *situationRun) {
		s.full(found())
		s.diff(found(runEval).searching("app/run.py"), with("topic", "project_metadata", "branch"))
		s.diff(found().searching("app/run.py"), with("topic", "project_metadata", "branch"))
		s.want("refs/heads/topic", "app/run.py:12 fixed")
	}},
	{"without a branch, the number names the pull request", func(s *situationRun) {
		s.diff(found(runEval).searching("app/run.py"), with(nil, "project_metadata", "branch"))
		s.want(pullRef, "app/run.py:12 open")
	}},
	{"a diff scan without searched files closes nothing", func(s *situationRun) {
		s.full(found())
		s.diff(found(runEval).searching("app/run.py"))
		s.diff(found().with(with([]any{}, "searched_paths"), with([]any{}, "rule_ids")))
		s.want(pullRef, "app/run.py:12 open")
	}},
	{"a pull request does not become the default branch", func(s *situationRun) {
		s.diff(found(runEval).searching("app/run.py"))
		s.full(found(), with("release", "project_metadata", "branch"))
		s.full(found())
		s.want(mainRef)
	}},
}

// brokenSituations are crashes, kills and lost answers. Each request is repeated after its answer was lost.
var brokenSituations = []situation{
	{"the answer to the first request is lost", func(s *situationRun) {
		unique := with(uuid.NewString(), "scan_metadata", "unique_id")
		first := s.begin(unique)
		s.day-- // the same commit
		if again := s.begin(unique); again != first {
			s.t.Errorf("scan %d, then %d", first, again)
		}
		s.end(first, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"the answer to the results is lost", func(s *situationRun) {
		id := s.begin()
		s.results(s.t, id, found(runEval).body(s.t))
		s.end(id, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"the answer to the completion is lost", func(s *situationRun) {
		id := s.begin()
		task := s.results(s.t, id, found(runEval).body(s.t))
		first, events := s.complete(s.t, id, task), s.events()
		if again := s.complete(s.t, id, task); written(s.t, again) != written(s.t, first) || s.events() != events {
			s.t.Errorf("%v, then %v", first, again)
		}
	}},
	{"all requests arrive twice at the same time", func(s *situationRun) {
		id, body := s.begin(), found(runEval).body(s.t)
		var twice sync.WaitGroup
		for range 2 {
			twice.Go(func() { s.send(s.t, http.MethodPost, resultsPath(id), body) })
		}
		twice.Wait()
		s.end(id, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"the scanner is killed before its results", func(s *situationRun) {
		s.full(found(runEval))
		if got := s.status(s.begin()); got != "RUNNING" {
			s.t.Errorf("%s", got)
		}
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"the engine fails", func(s *situationRun) {
		s.full(found(runEval))
		id := s.begin()
		s.ok(s.t, http.MethodPost, errorPath(id), `{"exit_code":2,"stderr":"Traceback"}`)
		if got := s.status(id); got != "ERROR" {
			s.t.Errorf("%s", got)
		}
		s.refused(s.t, http.StatusConflict, http.MethodPost, resultsPath(id), found().body(s.t), "reported an error")
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"an error after the results changes nothing", func(s *situationRun) {
		id := s.begin()
		s.end(id, found(runEval))
		s.ok(s.t, http.MethodPost, errorPath(id), `{"exit_code":2,"stderr":""}`)
		if got := s.status(id); got != "COMPLETED" {
			s.t.Errorf("%s", got)
		}
	}},
	{"the scanner completes without results and tries again", func(s *situationRun) {
		id := s.begin()
		if answer := s.ok(s.t, http.MethodPost, completePath(id), recorded(s.t, "complete")); answer["success"] != false {
			s.t.Errorf("%v", answer)
		}
		s.end(id, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"the scanner gives up waiting for results that never came", func(s *situationRun) {
		s.full(found(runEval))
		id := s.begin()
		if answer := s.ok(s.t, http.MethodPost, completePath(id), recorded(s.t, "complete", with(true, "final_attempt"))); answer["success"] != true {
			s.t.Errorf("%v", answer)
		}
		s.refused(s.t, http.StatusConflict, http.MethodPost, resultsPath(id), found().body(s.t), "ended without results")
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a body that is cut off", func(s *situationRun) {
		id, body := s.begin(), found(runEval).body(s.t)
		s.refused(s.t, http.StatusBadRequest, http.MethodPost, resultsPath(id), body[:len(body)/2], "")
		s.end(id, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a body that is not JSON", func(s *situationRun) {
		s.refused(s.t, http.StatusBadRequest, http.MethodPost, resultsPath(s.begin()), "<html>proxy</html>", "")
	}},
	{"two scans of one commit at the same time", func(s *situationRun) {
		first, second := s.begin(), s.begin()
		s.end(second, found(runEval))
		s.end(first, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a scan that another one overtakes", func(s *situationRun) {
		s.full(found(runEval))
		before, after := s.begin(), s.begin()
		s.end(after, found())
		s.end(before, found(runEval))
		s.want(mainRef, "app/run.py:12 fixed")
	}},
}

// refusedSituations are requests that the server refuses. The scanner prints the text.
var refusedSituations = []situation{
	{"no token", func(s *situationRun) {
		scannerClient{s.Server, ""}.refused(s.t, http.StatusUnauthorized, http.MethodPost, cliScans, recorded(s.t, "create_1.97"), "")
	}},
	{"an unknown token", func(s *situationRun) {
		scannerClient{s.Server, "sgp_" + strings.Repeat("x", 40)}.refused(s.t, http.StatusUnauthorized, http.MethodPost, cliScans, recorded(s.t, "create_1.97"), "")
	}},
	{"a token of another organization", func(s *situationRun) {
		other := scannerClient{s.Server, s.AddTenant(s.t, "umbrella").Token}
		id := s.begin()
		other.refused(s.t, http.StatusNotFound, http.MethodPost, resultsPath(id), found().body(s.t), "not found")
		other.refused(s.t, http.StatusNotFound, http.MethodPost, completePath(id), recorded(s.t, "complete"), "not found")
		other.refused(s.t, http.StatusNotFound, http.MethodPost, errorPath(id), `{"exit_code":2}`, "not found")
	}},
	{"a scan that does not exist", func(s *situationRun) {
		for _, id := range []int64{0, -1, 1 << 40} {
			s.refused(s.t, http.StatusNotFound, http.MethodPost, resultsPath(id), found().body(s.t), "not found")
		}
	}},
	{"other results for the same scan", func(s *situationRun) {
		id := s.begin()
		s.end(id, found(runEval))
		s.refused(s.t, http.StatusConflict, http.MethodPost, resultsPath(id), found(oldHash).body(s.t), "other results")
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"results that are too large", func(s *situationRun) {
		id := s.begin()
		body := found(runEval).with(with(strings.Repeat("x", 2<<20), "new_field")).body(s.t)
		s.refused(s.t, http.StatusRequestEntityTooLarge, http.MethodPost, resultsPath(id), body, "at most 1048576 bytes")
		s.end(id, found(runEval))
		s.want(mainRef, "app/run.py:12 open")
	}},
	{"a branch that Git refuses", func(s *situationRun) {
		body := recorded(s.t, "create_1.97", with("a..b", "project_metadata", "branch"), with(uuid.NewString(), "scan_metadata", "unique_id"))
		s.refused(s.t, http.StatusBadRequest, http.MethodPost, cliScans, body, "branch")
	}},
	{"a project name that cannot be", func(s *situationRun) {
		body := recorded(s.t, "create_1.97", with("../x", "project_metadata", "repo_display_name"), with(uuid.NewString(), "scan_metadata", "unique_id"))
		s.refused(s.t, http.StatusBadRequest, http.MethodPost, cliScans, body, "")
	}},
	{"a request without a body", func(s *situationRun) {
		s.refused(s.t, http.StatusBadRequest, http.MethodPost, cliScans, "[]", "")
	}},
	{"a dry run stores nothing", func(s *situationRun) {
		before := s.Store.Reader.Scan.Query().CountX(s.System(s.t))
		if id := s.begin(with(true, "scan_metadata", "dry_run")); id != 0 {
			s.t.Errorf("scan %d", id)
		}
		if n := s.Store.Reader.Scan.Query().Where(scan.IDGT(0)).CountX(s.System(s.t)); n != before {
			s.t.Errorf("%d scans, %d before", n, before)
		}
	}},
	{"the closed engine", func(s *situationRun) {
		s.refused(s.t, http.StatusForbidden, http.MethodGet, "/api/agent/deployments/deepbinary/manylinux?version=1.97.0", "", "--oss-only")
	}},
}
