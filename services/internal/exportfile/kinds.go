package exportfile

import (
	"fmt"

	"github.com/palisade/palisade/ent"
)

// The formats, as exports store them.
const (
	CSV       = "csv"
	NDJSON    = "ndjson"
	SARIF     = "sarif"
	OpenVEX   = "openvex"
	CycloneDX = "cyclonedx"
	SBOM      = "sbom"
	SBOMXML   = "sbom_xml"
)

// kinds are the media types and the names of files.
var kinds = map[string]struct{ mediaType, name string }{
	CSV:       {"text/csv; charset=utf-8", "findings-%d.csv"},
	NDJSON:    {"application/x-ndjson", "findings-%d.ndjson"},
	SARIF:     {"application/sarif+json", "findings-%d.sarif"},
	OpenVEX:   {"application/json", "findings-%d.openvex.json"},
	CycloneDX: {"application/vnd.cyclonedx+json", "findings-%d.cdx.json"},
	SBOM:      {"application/vnd.cyclonedx+json", "sbom-%d.cdx.json"},
	SBOMXML:   {"application/vnd.cyclonedx+xml", "sbom-%d.cdx.xml"},
}

// MediaType is the media type of a format.
func MediaType(format string) string { return kinds[format].mediaType }

// Name is the name of a file for those who download it.
func Name(of *ent.Export) string { return fmt.Sprintf(kinds[of.Format].name, of.ID) }
