package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pipelines are the files that CI systems read.
var pipelines = []string{
	".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile",
	"azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite/pipeline.yml",
}

const (
	scanCommand    = "semgrep ci"
	failClosed     = "--no-suppress-errors"
	suppressErrors = "SEMGREP_SUPPRESS_ERRORS"
)

// ciProblem is a reason why a scan does not fail its job, or always fails it.
type ciProblem struct{ status, detail, fix string }

// checkErrors checks that an error of the scanner fails the job. By default, a scan with an expired token or without a
// server succeeds.
func (d *ciDoctor) checkErrors() {
	const name = "errors"
	closed := isOff(d.std.getenv(suppressErrors))
	var holding []string
	found := false
	for _, pattern := range pipelines {
		files, _ := filepath.Glob(pattern) // the patterns are valid
		for _, file := range files {
			content, err := os.ReadFile(file) //nolint:gosec // the job's own files
			scripts := scriptsOf(file, content)
			if err != nil || len(scripts) == 0 {
				continue
			}
			found = true
			problems := problemsOf(scripts, closed, setsVariable.Match(shellComment.ReplaceAll(content, nil)))
			for _, p := range problems {
				d.add(name, p.status, file+" "+p.detail, p.fix)
			}
			if len(problems) == 0 {
				holding = append(holding, file)
			}
		}
	}
	switch {
	case closed && len(holding) == 0 && !found:
		d.ok(name, "errors of the scanner fail the job (%s)", suppressErrors)
	case closed && len(holding) > 0:
		d.ok(name, "errors of the scanner fail the job: %s (%s)", strings.Join(holding, ", "), suppressErrors)
	case len(holding) > 0:
		d.ok(name, "errors of the scanner fail the job: %s", strings.Join(holding, ", "))
	case !found:
		d.warn(name, "no known pipeline file runs semgrep ci: whether its errors fail the job is unknown", "run it with "+failClosed)
	}
}

// setsVariable finds a variable that replaces the flag, in any syntax. It may be a variable of another job.
var setsVariable = regexp.MustCompile(suppressErrors + `['"]?\s*[:=]\s*['"]?(?i:0|false|f|no|n|off)\b`)

func problemsOf(scripts []ciScript, closed, mentioned bool) []ciProblem {
	var list []ciProblem
	for _, s := range scripts {
		list = append(list, s.around...)
		for _, c := range s.calls() {
			list = append(list, c.flagProblems(closed, mentioned)...)
			list = append(list, c.statusProblems()...)
		}
	}
	var distinct []ciProblem
	for _, p := range list {
		if !slices.Contains(distinct, p) {
			distinct = append(distinct, p)
		}
	}
	return distinct
}

// ciScript is text that a job executes. around has problems of the settings of its step and job.
type ciScript struct {
	text   string
	around []ciProblem
}

var (
	// joined are lines that a backslash continues.
	joined = regexp.MustCompile(`\\\r?\n\s*`)
	// shellComment begins a line or follows a blank. groovyComment is one of a Jenkinsfile.
	shellComment  = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	groovyComment = regexp.MustCompile(`(?m)(^|\s)//.*$|(?s:^\s*/\*.*?\*/)`)
	catches       = regexp.MustCompile(`\b(catchError|warnError)\b`)
)

// scriptsOf returns the scripts of a pipeline file that run the scanner. A file that is no YAML is one script.
func scriptsOf(file string, content []byte) []ciScript {
	var all []ciScript
	if ext := filepath.Ext(file); ext != ".yml" && ext != ".yaml" {
		all = []ciScript{jenkinsScript(groovyComment.ReplaceAllString(string(content), ""))}
	} else if documents, err := readYAML(content); err != nil {
		all = []ciScript{{text: string(content)}}
	} else {
		for _, document := range documents {
			all = append(all, scriptsIn(document, nil)...)
		}
	}
	return slices.DeleteFunc(all, func(s ciScript) bool { return len(s.calls()) == 0 })
}

func jenkinsScript(text string) ciScript {
	s := ciScript{text: text}
	if found := catches.FindString(text); found != "" {
		s.around = []ciProblem{{ciWarning, "has " + found + ": the job seems to go on after a failed scan", "run semgrep ci outside of it"}}
	}
	return s
}

func readYAML(content []byte) (documents []any, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

// notScripts are keys with texts for people.
var notScripts = []string{"name", "displayName", "label", "description", "if"}

// scriptsIn returns the scripts below a node. A list of texts is one script. around has the problems of what
// encloses it.
func scriptsIn(node any, around []ciProblem) (scripts []ciScript) {
	switch node := node.(type) {
	case string:
		return []ciScript{{node, around}}
	case []any:
		var lines []string
		for _, item := range node {
			if line, isText := item.(string); isText {
				lines = append(lines, line)
			} else {
				scripts = append(scripts, scriptsIn(item, around)...)
			}
		}
		return append(scripts, ciScript{strings.Join(lines, "\n"), around})
	case map[string]any:
		around = slices.Concat(around, lenient(node))
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if !slices.Contains(notScripts, key) {
				scripts = append(scripts, scriptsIn(node[key], around)...)
			}
		}
	case map[any]any: // with numbers as keys, say
		texts := map[string]any{}
		for key, value := range node {
			texts[fmt.Sprint(key)] = value
		}
		return scriptsIn(texts, around)
	}
	return scripts
}

// lenient finds settings of a step or job under which the pipeline succeeds although it fails.
func lenient(settings map[string]any) (list []ciProblem) {
	for _, key := range []string{"continue-on-error", "allow_failure", "continueOnError", "soft_fail"} {
		switch value := settings[key]; value {
		case nil, false, "false":
		case true, "true":
			list = append(list, ciProblem{ciFailed, "has " + key + ": true: a failed scan passes the gate", "remove it"})
		default:
			list = append(list, ciProblem{ciWarning, fmt.Sprintf("has %s: %v: a failed scan seems to pass at times", key, value), "remove it"})
		}
	}
	rules, _ := settings["rules"].([]any)
	for _, rule := range rules {
		if rule, is := rule.(map[string]any); is && rule["allow_failure"] == true {
			list = append(list, ciProblem{ciWarning, "has a rule with allow_failure: true: a failed scan seems to pass at times", "remove it"})
		}
	}
	return list
}
