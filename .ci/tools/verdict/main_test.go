package main

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	const (
		start   = `{"Action":"start","Package":"p"}` + "\n"
		runA    = `{"Action":"run","Package":"p","Test":"TestA"}` + "\n"
		passA   = `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}` + "\n"
		failA   = `{"Action":"fail","Package":"p","Test":"TestA","Elapsed":2}` + "\n"
		pass    = `{"Action":"pass","Package":"p","Elapsed":2}` + "\n"
		fail    = `{"Action":"fail","Package":"p","Elapsed":2}` + "\n"
		runB    = `{"Action":"run","Package":"p","Test":"TestB"}` + "\n"
		message = "# p\nundefined: x\n"
		output  = `{"Action":"output","Package":"p","Output":"{\"Action\":\"fail\"}"}` + "\n"
	)
	for name, c := range map[string]struct {
		in   string
		ok   bool
		want string
	}{
		"passed":                       {start + runA + output + passA + pass, true, "1.5 p TestA"},
		"nothing ran":                  {"", false, "no test ran"},
		"failed":                       {start + runA + failA + fail, false, "FAIL p TestA\n"},
		"failed twice":                 {start + runA + failA + fail + start + runA + failA + fail, false, "FAIL p TestA\n"},
		"passed when run again":        {start + runA + failA + fail + start + runA + passA + pass, true, "a defect, of the code or of the test\np TestA"},
		"failed without a failed test": {start + runA + passA + fail + start + pass, false, "FAIL p without a failed test"},
		"did not compile":              {message + start + fail, false, "FAIL p without a failed test"},
		"ended in the middle of B":     {start + runA + failA + runB + fail + start + runA + passA + pass, false, "FAIL p TestB never ended"},
	} {
		t.Run(name, func(t *testing.T) {
			all := results{}
			if err := all.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if ok := all.print(&out); ok != c.ok || !strings.Contains(out.String(), c.want) {
				t.Errorf("passed: %v, want %v with %q:\n%s", ok, c.ok, c.want, out.String())
			}
		})
	}
}
