package sarif

import (
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Artifact is a file that a run lists.
type Artifact struct {
	// Path has the same form as the paths of results.
	Path string
	// Target says that the tool was asked to scan the file (role analysisTarget, SARIF 3.24.6). Plain says that the
	// file has no role: many tools list all files without roles, and many others list only files with results.
	Target, Plain bool
	// Hash is "name:digest" of the file's content by the best algorithm that the run has, or empty.
	Hash string
}

// artifactFacts holds the stored properties of an artifact, without its location.
type artifactFacts struct {
	roles uint8
	hash  string
}

const (
	roleTarget = 1 << iota
	roleOther
	// roleNoFile is a directory, or a file that no longer exists.
	roleNoFile
)

// artifactList reads the locations, which results may refer to by index, and the facts about the files.
func (r *reader) artifactList(run *Run) error {
	full := false
	if k := r.Kind(); k != '[' && k != 'n' {
		run.artifactsLost = true
	}
	return r.list(run, true, func(int) error {
		if full {
			return r.Skip()
		}
		var a wireArtifact
		problem, err := r.decode(run, &a, func(pointer string) bool {
			run.artifactsLost = true
			return pointer == "" || strings.HasPrefix(pointer, "/location") || strings.HasPrefix(pointer, "/roles") // it may be a file that was not scanned
		})
		if err != nil {
			return err
		}
		var location wireArtifactLocation
		if a.Location != nil {
			location = wireArtifactLocation{URI: a.Location.URI, URIBaseID: a.Location.URIBaseID}
		}
		facts := artifactFacts{roles: roles(a.Roles), hash: bestHash(a.Hashes)}
		// A broken artifact is kept as an empty one, so that the indexes of the others stay valid.
		if full = !r.charge(len(location.URI) + len(location.URIBaseID) + len(facts.hash) + 64); full {
			run.warn("artifacts from index %d on are ignored: the report describes more than fits", len(run.artifacts))
		}
		if run.artifactsLost = run.artifactsLost || full || problem != ""; full {
			return nil
		}
		run.artifacts, run.artifactFacts = append(run.artifacts, location), append(run.artifactFacts, facts)
		return nil
	})
}

func roles(words []string) (bits uint8) {
	for _, word := range words {
		switch strings.ToLower(word) {
		case "analysistarget":
			bits |= roleTarget
		case "directory", "deleted":
			bits |= roleNoFile
		default:
			bits |= roleOther
		}
	}
	return bits
}

// hashNames are the usual algorithms, the best first. They detect equal content; resistance to forgery does not matter.
var hashNames = []string{"sha-256", "sha256", "sha-512", "sha512", "sha-1", "sha1", "md5"}

func bestHash(hashes map[string]string) string {
	values := make(map[string]string, len(hashes))
	for name, value := range hashes {
		if value = strings.ToLower(strings.TrimSpace(value)); value != "" {
			values[strings.ToLower(name)] = value
		}
	}
	for _, name := range append(slices.Clone(hashNames), slices.Sorted(maps.Keys(values))...) {
		if value := values[name]; value != "" {
			return jsonstream.Clean(jsonstream.Cut(name+":"+value, 200))
		}
	}
	return ""
}

// Artifacts returns the files that the run lists. complete is false if some could not be read.
func (run *Run) Artifacts() (files []Artifact, complete bool) {
	complete = !run.artifactsLost
	for i := range run.artifacts {
		facts := run.artifactFacts[i]
		if facts.roles&roleNoFile != 0 {
			continue
		}
		path, _ := run.paths.resolve(&run.artifacts[i])
		if path == "" {
			complete = false
			continue
		}
		files = append(files, Artifact{Path: path, Target: facts.roles&roleTarget != 0, Plain: facts.roles == 0, Hash: facts.hash})
	}
	return files, complete
}

// RulesComplete reports whether all rules that the run declares could be read.
func (run *Run) RulesComplete() bool {
	for _, c := range run.components() {
		if slices.Contains(c.rules, nil) {
			return false
		}
	}
	return true
}

// Failed returns the files and rules that error-level notifications of an otherwise successful run name. Missing
// results of these may still be in the code.
func (run *Run) Failed() (files, rules []string) { return run.failedFiles, run.failedRules }
