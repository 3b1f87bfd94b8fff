package sarif

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Scanners of container images report the files of one image per run. The image tells runs apart: without it, the
// report about one image would replace the report about another one. See [Run.ImageCategory].

// imageProperties are the properties of a run that name its image. Trivy has imageName and repoTags.
type imageProperties struct {
	ImageName    loose `json:"imageName"`
	ImageRef     loose `json:"imageRef"`
	Image        loose `json:"image"`
	ArtifactName loose `json:"artifactName"`
	ArtifactType loose `json:"artifactType"`
	RepoTags     loose `json:"repoTags"`
	RepoDigests  loose `json:"repoDigests"`
}

const imageType = "container_image"

// image returns the reference of the image, or "".
func (p imageProperties) image() string {
	switch first(p.ArtifactType) {
	case "":
		return ImageReference(first(p.ImageName, p.ImageRef, p.Image), p.RepoTags, p.RepoDigests)
	case imageType:
		return ImageReference(first(p.ImageName, p.ImageRef, p.Image, p.ArtifactName), p.RepoTags, p.RepoDigests)
	}
	return ""
}

// imageFile matches names of files and directories with a saved image.
var imageFile = regexp.MustCompile(`(?i)^(?:[./~]|[a-z]:[\\/])|\\|^(?:docker-archive|oci-archive|oci-dir|singularity|file):|\.(?:tar(?:\.[a-z0-9]+)?|tgz|txz|oci|sif)$`)

// ImageReference is the scanned image as the caller of the scanner named it. Names of files are often equal for all
// images, or new with each build. Then the first of the image's own tags and digests is better.
func ImageReference(named string, own ...jsonstream.Texts) string {
	if tag := first(own...); tag != "" && (named == "" || imageFile.MatchString(named)) {
		return tag
	}
	return named
}

var (
	// layerName matches Grype's logical location: the image, the digest of the layer, and the path in it.
	layerName = regexp.MustCompile(`^(\S+)@sha256:[0-9a-f]{64}:/`)
	// foundInImage matches the end of Grype's messages.
	foundInImage = regexp.MustCompile(` in image (\S+) at: `)
	// grypeSource matches the name of a source that Grype takes before a reference. Other tools mean an image of this
	// name: "registry:2".
	grypeSource = regexp.MustCompile(`^(?:registry|docker|podman|containerd):`)
	// imageScheme matches what Docker Scout, Skopeo and Grype put before a reference or a file.
	imageScheme = regexp.MustCompile(`^(?:[a-z-]+://|docker:|(?:docker|oci)-archive:|oci-dir:|singularity:)`)
	// imageTag matches the tag and digest of a reference. A colon before a slash belongs to a port.
	imageTag = regexp.MustCompile(`(?::[^:/@]*)?(?:@[^/]*)?$`)
)

// imageNames are references of the image: in the properties of the run, and in the first result. Snyk Container has it
// only as the file of its results.
type imageNames struct{ property, result, file string }

// runProperties reads the properties of a run: its image, and its product.
func (r *reader) runProperties(run *Run) error {
	var properties struct {
		imageProperties
		Product loose `json:"product"`
	}
	err := r.optional(run, &properties, never)
	run.image.property = properties.image()
	product := strings.ToLower(first(properties.Product))
	switch {
	case slices.Contains(vocabulary.Products, product):
		run.ownProduct = product
	case product != "":
		run.warn("properties.product is ignored: it is %q, want one of %s", product, strings.Join(vocabulary.Products, ", "))
	}
	return err
}

// first notes the image that the first result names.
func (n *imageNames) first(raw jsontext.Value) {
	var w struct {
		Message struct {
			Text string `json:"text"`
		} `json:"message"`
		Locations capped[struct {
			PhysicalLocation *wirePhysicalLocation `json:"physicalLocation"`
			LogicalLocations capped[struct {
				FullyQualifiedName string `json:"fullyQualifiedName"`
			}] `json:"logicalLocations"`
		}] `json:"locations"`
	}
	if json.Unmarshal(raw, &w, jsonstream.Options) != nil || len(w.Locations) == 0 {
		return
	}
	if parts := foundInImage.FindStringSubmatch(w.Message.Text); parts != nil {
		n.result = GrypeImage(parts[1])
	}
	for _, logical := range w.Locations[0].LogicalLocations {
		if parts := layerName.FindStringSubmatch(logical.FullyQualifiedName); parts != nil {
			n.result = GrypeImage(parts[1])
		}
	}
	if physical := w.Locations[0].PhysicalLocation; physical != nil && physical.ArtifactLocation != nil {
		n.file = physical.ArtifactLocation.URI
	}
}

// category returns the name of the image without its tag and digest, which change with each build.
func (n *imageNames) category(slug string) string {
	reference := cmp.Or(n.property, n.result)
	if reference == "" && slug == "snyk container" {
		reference = n.file
	}
	return ImageName(reference)
}

// GrypeImage is what Grype was asked to scan, without the source that it takes the image from.
func GrypeImage(asked string) string { return grypeSource.ReplaceAllString(asked, "") }

// ImageName is the name of an image without scheme, tag and digest.
func ImageName(reference string) string {
	reference = imageScheme.ReplaceAllString(strings.TrimSpace(redactTokens(reference)), "")
	return jsonstream.Cut(jsonstream.Clean(imageTag.ReplaceAllString(reference, "")), 255)
}
