package sbom

import (
	"cmp"
	"io"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/store"
)

// versions are the versions of CycloneDX.
var versions = map[supplychainv1.SbomCycloneDxVersion]cdx.SpecVersion{
	supplychainv1.SbomCycloneDxVersion_SBOM_CYCLONE_DX_VERSION_UNSPECIFIED: cdx.SpecVersion1_6,
	supplychainv1.SbomCycloneDxVersion_SBOM_CYCLONE_DX_VERSION_V1_4:        cdx.SpecVersion1_4,
	supplychainv1.SbomCycloneDxVersion_SBOM_CYCLONE_DX_VERSION_V1_5:        cdx.SpecVersion1_5,
	supplychainv1.SbomCycloneDxVersion_SBOM_CYCLONE_DX_VERSION_V1_6:        cdx.SpecVersion1_6,
	supplychainv1.SbomCycloneDxVersion_SBOM_CYCLONE_DX_VERSION_V1_7:        cdx.SpecVersion1_7,
}

// encode writes the document. What the requested version does not have is left out.
func (r *run) encode(to io.Writer) error {
	const root = "project"
	component := &cdx.Component{BOMRef: root, Type: componentType(r.request.GetMetadataComponentType()), Name: r.project.Name}
	if r.project.URL != "" {
		component.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: r.project.URL}}
	}
	components, dependencies, vulnerabilities := r.parts.components(), r.parts.graph(root), r.parts.known()
	document := cdx.NewBOM()
	// A document is the same for each attempt of the job.
	document.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(exportfile.URL(r.baseURL, r.row.DeploymentID, r.row.ID))).String()
	document.Metadata = &cdx.Metadata{
		Timestamp: store.Time(r.row.CreatedAt).Format(time.RFC3339),
		Tools:     tool(),
		Component: component,
		Supplier:  supplierOf(r.request.GetMetadataSupplier()),
	}
	document.Components, document.Dependencies, document.Vulnerabilities = &components, &dependencies, &vulnerabilities
	format := cdx.BOMFileFormatJSON
	if r.row.Format == exportfile.SBOMXML {
		format = cdx.BOMFileFormatXML
	}
	return cdx.NewBOMEncoder(to, format).SetEscapeHTML(false).EncodeVersion(document, versions[r.request.GetFormatVersion().GetCyclonedxVersion()])
}

// tool is this server.
func tool() *cdx.ToolsChoice {
	return &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "Palisade"}}}
}

// componentType is the kind of a project: the words of CycloneDX are the end of the enum's.
func componentType(of supplychainv1.SbomMetadataComponentType) cdx.ComponentType {
	if of == supplychainv1.SbomMetadataComponentType_SBOM_METADATA_COMPONENT_TYPE_UNSPECIFIED {
		return cdx.ComponentTypeApplication
	}
	word := strings.TrimPrefix(of.String(), "SBOM_METADATA_COMPONENT_TYPE_CYCLONE_DX_V15_")
	return cdx.ComponentType(strings.ReplaceAll(strings.ToLower(word), "_", "-"))
}

// supplierOf is the supplier of a request, nil if it has none.
func supplierOf(s *supplychainv1.SbomMetadataSupplier) *cdx.OrganizationalEntity {
	if s == nil {
		return nil
	}
	out := &cdx.OrganizationalEntity{Name: s.GetName()}
	if s.GetUrl() != "" {
		out.URL = &[]string{s.GetUrl()}
	}
	if c := s.GetContact(); cmp.Or(c.GetName(), c.GetEmail(), c.GetPhone()) != "" {
		out.Contact = &[]cdx.OrganizationalContact{{Name: c.GetName(), Email: c.GetEmail(), Phone: c.GetPhone()}}
	}
	return out
}
