package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// command runs a program of the job's PATH. found is false if there is none.
func (d *ciDoctor) command(ctx context.Context, program string, args ...string) (output string, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ciTimeout)
	defer cancel()
	for _, dir := range filepath.SplitList(d.std.getenv("PATH")) {
		path, err := exec.LookPath(filepath.Join(dir, program))
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the job's own programs
		cmd.Env = append(slices.Clone(d.std.environ), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), true, err
	}
	return "", false, nil
}

var scannerVersion = regexp.MustCompile(`\b[0-9]+\.[0-9]+\.[0-9]+\b`)

// checkScanner finds the scanner and its version, and whether it calls its vendor.
func (d *ciDoctor) checkScanner(ctx context.Context) {
	const name = "scanner"
	output, found, err := d.command(ctx, "semgrep", "--version")
	d.version = scannerVersion.FindString(output)
	switch {
	case !found:
		d.warn(name, "semgrep is not in PATH", "run this command where semgrep ci runs, if you use it")
	case err != nil || d.version == "":
		d.fail(name, fmt.Sprintf("semgrep --version fails: %v %.200s", err, output), "reinstall semgrep")
	default:
		d.ok(name, "semgrep %s", d.version)
	}
	if !found {
		return
	}
	if d.std.getenv("SEMGREP_VERSION_CHECK_URL") == "" && !isOff(d.std.getenv("SEMGREP_ENABLE_VERSION_CHECK")) {
		d.warn(name, "semgrep asks its vendor for new versions after each scan", "set SEMGREP_ENABLE_VERSION_CHECK=0")
	}
	if !isOff(d.std.getenv("SEMGREP_SEND_METRICS")) {
		d.warn(name, "semgrep may send metrics to its vendor", "set SEMGREP_SEND_METRICS=off, or pass --metrics off")
	}
}

// isOff reports whether a variable says no, in the scanner's words.
func isOff(value string) bool {
	return slices.Contains([]string{"0", "false", "f", "no", "n", "off"}, strings.ToLower(strings.TrimSpace(value)))
}

// Variables of CI systems.
var (
	// targetBranches name the branch that a pull request is compared with.
	targetBranches = []string{
		"SEMGREP_BASELINE_REF", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "SYSTEM_PULLREQUEST_TARGETBRANCH",
		"BITBUCKET_PR_DESTINATION_BRANCH", "CHANGE_TARGET", "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
	}
	// branches name the scanned branch when HEAD is detached.
	branches = []string{
		"SEMGREP_BRANCH", "GITHUB_REF", "CI_COMMIT_REF_NAME", "BUILD_SOURCEBRANCH", "BITBUCKET_BRANCH", "CIRCLE_BRANCH", "BRANCH_NAME",
		"GIT_BRANCH", "BUILDKITE_BRANCH", "TRAVIS_BRANCH",
	}
)

// checkGit checks the checkout: the scanner compares a pull request with its merge base.
func (d *ciDoctor) checkGit(ctx context.Context) {
	const name = "git"
	git := func(args ...string) (string, error) {
		output, _, err := d.command(ctx, "git", args...)
		return output, err
	}
	output, found, err := d.command(ctx, "git", "rev-parse", "HEAD")
	switch {
	case !found:
		d.fail(name, "git is not in PATH: semgrep ci needs it", "install git in the job's image")
		return
	case err != nil && strings.Contains(output, "dubious ownership"):
		d.fail(name, "git refuses the checkout, which belongs to another user", `git config --global --add safe.directory "$PWD"`)
		return
	case err != nil:
		d.fail(name, "this directory is no checkout of a repository with a commit", "check out the repository first")
		return
	}
	if d.std.getenv("GITHUB_EVENT_NAME") == "pull_request_target" && output == d.std.getenv("GITHUB_SHA") {
		d.fail(name, "pull_request_target checked out the base branch: the change is not scanned", "use the event pull_request")
		return
	}
	shallow, _ := git("rev-parse", "--is-shallow-repository")
	d.checkMergeBase(git, shallow == "true")
	if _, err := git("symbolic-ref", "-q", "HEAD"); err != nil {
		if variable, branch := d.firstSet(branches...); branch == "" {
			d.warn(name, "HEAD is detached, and no variable names the branch", "set SEMGREP_BRANCH")
		} else {
			d.ok(name, "the branch is %s (%s)", branch, variable)
		}
	}
}

func (d *ciDoctor) checkMergeBase(git func(...string) (string, error), shallow bool) {
	const (
		name = "git"
		deep = "fetch the whole history (GitHub: fetch-depth: 0, GitLab: GIT_DEPTH: 0)"
	)
	variable, target := d.firstSet(targetBranches...)
	if target == "" {
		if shallow {
			d.warn(name, "the checkout is shallow: authors and dates of findings are missing", deep)
		} else {
			d.ok(name, "a complete checkout; no pull request, so the scan is a full one")
		}
		return
	}
	target = strings.TrimPrefix(target, "refs/heads/")
	for _, base := range []string{"origin/" + target, target} {
		if commit, err := git("merge-base", base, "HEAD"); err == nil {
			d.ok(name, "compared with %.12s, the merge base with %s (%s)", commit, base, variable)
			return
		}
	}
	if shallow {
		d.warn(name, "the checkout is shallow and has no merge base with "+target+": the scanner must fetch it itself", deep)
		return
	}
	d.fail(name, "there is no merge base with "+target+", which "+variable+" names", "git fetch origin "+shellWord(target))
}

// shellWord replaces what is not a plain branch name, so that people can paste the command.
func shellWord(text string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`).MatchString(text) {
		return text
	}
	return "BRANCH"
}
