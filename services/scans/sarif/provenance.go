package sarif

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/places"
)

func (r *reader) provenance(run *Run) error {
	var details capped[struct {
		RepositoryURI string                `json:"repositoryUri"`
		RevisionID    string                `json:"revisionId"`
		Branch        string                `json:"branch"`
		AsOf          string                `json:"asOfTimeUtc"`
		MappedTo      *wireArtifactLocation `json:"mappedTo"`
	}]
	err := r.optional(run, &details, func(pointer string) bool { return pointer == "" || strings.Contains(pointer, "/mappedTo") })
	for i, d := range details {
		if i == 0 {
			run.RepositoryURI = jsonstream.Cut(jsonstream.Clean(d.RepositoryURI), 2048)
			run.AsOf = ParseTime(d.AsOf)
			run.Revision = jsonstream.Cut(redactTokens(jsonstream.Clean(d.RevisionID)), 255)
			run.Branch = jsonstream.Cut(redactTokens(jsonstream.Clean(d.Branch)), 255)
		}
		if d.MappedTo != nil {
			run.mappedTo = append(run.mappedTo, *d.MappedTo)
		}
	}
	return err
}

// The root is guessed from a sample: the first results, and then one of sampleStep.
const (
	sampleFirst = 200
	sampleStep  = 512
	maxSample   = 2000
)

// sample keeps the location of a result for guessRoot.
func (r *reader) sample(run *Run, raw jsontext.Value) {
	if n := run.Results - 1; n >= sampleFirst && n%sampleStep != 0 || len(run.sampled) >= maxSample {
		return
	}
	var w struct {
		Locations capped[struct {
			PhysicalLocation struct {
				ArtifactLocation *wireArtifactLocation `json:"artifactLocation"`
			} `json:"physicalLocation"`
		}] `json:"locations"`
	}
	if jsonstream.Unmarshal(raw, &w, nil) != nil {
		return
	}
	for _, location := range w.Locations {
		at := location.PhysicalLocation.ArtifactLocation
		if at == nil || at.URI == "" && at.Index == nil {
			continue
		}
		if r.charge(len(at.URI) + len(at.URIBaseID) + 64) {
			run.sampled = append(run.sampled, *at)
		}
		return
	}
}

// guessRoot looks for the checkout of a well-known service if some paths are absolute, and warns if it found one.
func (run *Run) guessRoot() {
	var sample []string
	listed := run.artifacts[:min(len(run.artifacts), maxSample)]
	for _, locations := range [][]wireArtifactLocation{run.sampled, listed} {
		for i := range locations {
			uri, _ := run.paths.written(&locations[i])
			if _, other := nonFile(uri); uri != "" && !other {
				sample = append(sample, places.Decode(uri))
			}
		}
	}
	run.sampled = nil
	if guess, ok := run.paths.Guess(sample); ok {
		run.warn("the report does not say where the repository is: %s is taken for its directory, because it looks like "+
			"the checkout of %s; set checkout_root if that is wrong", jsonstream.Clean(jsonstream.Cut(guess.Root, 200)), guess.Service)
	}
}
