package sarif_test

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/services/scans/sarif"
)

func TestArtifacts(t *testing.T) {
	for name, c := range map[string]struct {
		artifacts string
		want      []sarif.Artifact
		complete  bool
	}{
		"none": {`[]`, nil, true},
		"roles": {`[{"location":{"uri":"a.go"},"roles":["analysisTarget","modified"]},{"location":{"uri":"b.go"}},{"location":{"uri":"c.go"},"roles":["resultFile"]},
			{"location":{"uri":"src"},"roles":["directory"]},{"location":{"uri":"d.go"},"roles":["analysisTarget","deleted"]}]`,
			[]sarif.Artifact{{Path: "a.go", Target: true}, {Path: "b.go", Plain: true}, {Path: "c.go"}}, true},
		"hashes": {`[{"location":{"uri":"a.go"},"hashes":{"md5":"00","SHA-256":"AB12"}},{"location":{"uri":"b.go"},"hashes":{"tlsh":"t1","sha-1":""}}]`,
			[]sarif.Artifact{{Path: "a.go", Plain: true, Hash: "sha-256:ab12"}, {Path: "b.go", Plain: true, Hash: "tlsh:t1"}}, true},
		"no place":     {`[{"location":{"uri":"a.go"}},{"roles":["analysisTarget"]}]`, []sarif.Artifact{{Path: "a.go", Plain: true}}, false},
		"climbs":       {`[{"location":{"uri":"../../path/a.go"}}]`, []sarif.Artifact{{Path: "path/a.go", Plain: true}}, true},
		"wrong":        {`[{"location":{"uri":[7]}},{"location":{"uri":"a.go"}}]`, []sarif.Artifact{{Path: "a.go", Plain: true}}, false},
		"not an array": {`{"a.go":{}}`, nil, false},
	} {
		report, err := open(run(`"tool":{"driver":{"name":"t"}},"results":[],"artifacts":`+c.artifacts), sarif.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if files, complete := report.Runs[0].Artifacts(); !slices.Equal(files, c.want) || complete != c.complete {
			t.Errorf("%s: %v %v, want %v %v", name, files, complete, c.want, c.complete)
		}
	}
}

// Errors of a successful run that name files and rules affect only these.
func TestFailuresOfFiles(t *testing.T) {
	const at = `"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"}}}]`
	for name, c := range map[string]struct {
		invocation   string
		succeeded    bool
		files, rules []string
	}{
		"a file":                               {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error",` + at + `}]`, true, []string{"a.go"}, nil},
		"a rule":                               {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error","associatedRule":{"id":"r"}}]`, true, nil, []string{"r"}},
		"a rule by index":                      {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error","associatedRule":{"index":0}}]`, true, nil, []string{"r"}},
		"both and a warning":                   {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error","associatedRule":{"id":"r"},` + at + `},{"level":"warning"}]`, true, []string{"a.go"}, []string{"r"}},
		"not successful":                       {`"executionSuccessful":false,"toolExecutionNotifications":[{"level":"error",` + at + `}]`, false, nil, nil},
		"nothing said":                         {`"toolExecutionNotifications":[{"level":"error",` + at + `}]`, false, nil, nil},
		"one names nothing":                    {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error",` + at + `},{"level":"error"}]`, false, nil, nil},
		"unknown rule by index":                {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error","associatedRule":{"index":7}}]`, false, nil, nil},
		"outside":                              {`"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"../x"}}}]}]`, false, nil, nil},
		"a rule of the configuration":          {`"executionSuccessful":true,"toolConfigurationNotifications":[{"level":"error","associatedRule":{"id":"r"},` + at + `}]`, true, nil, []string{"r"}},
		"an unknown rule of the configuration": {`"executionSuccessful":true,"toolConfigurationNotifications":[{"level":"error","associatedRule":{"index":7}}]`, false, nil, nil},
		"a level of the descriptor":            {`"executionSuccessful":true,"toolExecutionNotifications":[{"descriptor":{"id":"N1"},` + at + `}]`, true, []string{"a.go"}, nil},
		"a descriptor by index":                {`"executionSuccessful":true,"toolExecutionNotifications":[{"descriptor":{"index":0}}]`, false, nil, nil},
		"a descriptor of a warning":            {`"executionSuccessful":true,"toolExecutionNotifications":[{"descriptor":{"id":"N2"},` + at + `},{"descriptor":{"id":"N3"}}]`, true, nil, nil},
		"an own level":                         {`"executionSuccessful":true,"toolExecutionNotifications":[{"descriptor":{"id":"N1"},"level":"note"}]`, true, nil, nil},
		"an overridden level": {`"executionSuccessful":true,"toolExecutionNotifications":[{"descriptor":{"id":"N2"},"associatedRule":{"id":"r"}},{"descriptor":{"id":"N1"}}],
			"notificationConfigurationOverrides":[{"descriptor":{"guid":"G2"},"configuration":{"level":"error"}},{"descriptor":{"id":"N1"},"configuration":{"level":"note"}}]`, true, nil, []string{"r"}},
		"a file that ESLint ignored": {`"executionSuccessful":true,"toolConfigurationNotifications":[{"level":"warning","message":{"text":"File ignored because of a pattern."},` + at + `}]`, true, []string{"a.go"}, nil},
		"about configuration":        {`"executionSuccessful":true,"toolConfigurationNotifications":[{"level":"error",` + at + `}]`, true, nil, nil},
	} {
		report, err := open(run(`"invocations":[{`+c.invocation+`}],"tool":{"driver":{"name":"t","rules":[{"id":"r"}],
			"notifications":[{"id":"N1","defaultConfiguration":{"level":"error"}},{"id":"N2","guid":"g2"}]}},"results":[]`), sarif.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		one := report.Runs[0]
		if files, rules := one.Failed(); one.Succeeded != c.succeeded || !slices.Equal(files, c.files) || !slices.Equal(rules, c.rules) {
			t.Errorf("%s: succeeded %v, files %v, rules %v", name, one.Succeeded, files, rules)
		}
	}
}

func TestFormerIDs(t *testing.T) {
	report, err := open(run(`"tool":{"driver":{"name":"t","rules":[{"id":"new","deprecatedIds":["old"," older ","","new"]},{"id":"b","deprecatedIds":{"x":1}},7]}},"results":[]`), sarif.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	one := report.Runs[0]
	if rules := one.Rules(); len(rules) != 2 || !slices.Equal(rules[0].FormerIDs, []string{"old", "older"}) || one.RulesComplete() {
		t.Errorf("%v, complete %v", rules, one.RulesComplete())
	}
}
