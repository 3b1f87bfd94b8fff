package automations_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/apitest"
)

var listedFinding = regexp.MustCompile(`at (\w+)\.go in`)

// TestPolicyNeverTellsTwice: whatever scans of two refs and days follow each other, a policy tells about a finding at
// most once more than it came back.
func TestPolicyNeverTellsTwice(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		rule := s.rule(t)
		s.apply(t, policy("Tell", high, notify(rule)))
		project, day := 0, today()
		rapid.Check(t, func(r *rapid.T) {
			project++
			name, before := fmt.Sprintf("acme/p%d", project), len(s.told(t))   // other checks are in other projects
			returned, present := map[string]int{}, map[string]map[string]int{} // by ref and file: 0 never, 1 there, 2 fixed
			for range rapid.IntRange(2, 6).Draw(r, "steps") {
				if rapid.IntRange(0, 3).Draw(r, "what") == 0 {
					day++
					s.day(t, day)
					continue
				}
				ref := rapid.SampledFrom([]string{"main", "next"}).Draw(r, "ref")
				files := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(r, "files")
				if present[ref] == nil {
					present[ref] = map[string]int{}
				}
				var results []string
				for _, file := range []string{"a", "b", "c"} {
					there := slices.Contains(files, file)
					switch {
					case there && present[ref][file] == 2:
						returned[file]++
						fallthrough
					case there:
						present[ref][file] = 1
						results = append(results, "error:"+file+".go")
					case present[ref][file] == 1:
						present[ref][file] = 2
					}
				}
				s.Upload(t, name, ref, report(results...))
				s.idle(t)
			}
			times := map[string]int{}
			for _, message := range s.told(t)[before:] {
				for _, found := range listedFinding.FindAllStringSubmatch(message, -1) {
					times[found[1]]++
				}
			}
			for _, file := range []string{"a", "b", "c"} {
				seen := present["main"][file]+present["next"][file] > 0
				if n := times[file]; n > 1+returned[file] || seen && n == 0 {
					r.Errorf("%s was told %d times, and came back %d times", file, n, returned[file])
				}
			}
		})
	})
}
