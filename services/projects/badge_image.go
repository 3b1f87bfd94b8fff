package projects

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// The URL of a badge is the key between these.
const (
	badgePath   = "/badges/"
	badgeSuffix = ".svg"
)

// badgeURL matches the path of a badge: 16 random bytes.
var badgeURL = regexp.MustCompile(`^/badges/([A-Za-z0-9_-]{22})\.svg$`)

const (
	// badgeAge is how long a badge stays as it is: everybody with its URL may ask, so counting is limited.
	badgeAge = time.Minute
	// badgesKept is how many badges are kept in memory.
	badgesKept = 1000
)

// badgeImages draws badges for everybody who knows their URL.
type badgeImages struct {
	store *store.Store
	kept  *expirable.LRU[string, string]
}

func newBadgeImages(st *store.Store) *badgeImages {
	return &badgeImages{store: st, kept: expirable.NewLRU[string, string](badgesKept, nil, badgeAge)}
}

// ServeHTTP answers with the image of a badge.
func (b *badgeImages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	match := badgeURL.FindStringSubmatch(r.URL.Path)
	if match == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusNotFound)
		return
	}
	image, err := b.image(r.Context(), match[1])
	switch {
	case ent.IsNotFound(err):
		refuse(w, http.StatusNotFound)
		return
	case err != nil:
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "image/svg+xml")
	header.Set("Cache-Control", "max-age="+strconv.Itoa(int(badgeAge.Seconds())))
	header.Set("Content-Security-Policy", "default-src 'none'")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin") // a README on another host shows it
	header.Set("X-Robots-Tag", "noindex")
	header.Set("Content-Length", strconv.Itoa(len(image)))
	_, _ = io.WriteString(w, image) // the caller may be gone
}

func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }

// image draws the badge with a key. A badge that was deleted disappears when its age is over.
func (b *badgeImages) image(ctx context.Context, key string) (string, error) {
	if image, ok := b.kept.Get(key); ok {
		return image, nil
	}
	row, err := b.store.Reader.Project.Query().Where(project.BadgeKey(key), project.ArchivedAtIsNil()).Only(tenant.System(ctx))
	if err != nil {
		return "", err
	}
	counts, err := openFindings(tenant.NewContext(ctx, row.DeploymentID), b.store.Reader, []int64{row.ID})
	if err != nil {
		return "", err
	}
	image := drawBadge(counts[row.ID])
	b.kept.Add(key, image)
	return image, nil
}

// drawBadge draws the numbers of open findings. The texts are as wide as textLength says in every font.
func drawBadge(open *projectsv1.RepositoryFindings) string {
	text, color := "no open findings", "#1a7f37"
	total := open.GetCritical() + open.GetHigh() + open.GetMedium() + open.GetLow()
	switch {
	case open.GetCritical() > 0:
		text, color = fmt.Sprintf("%d critical", open.GetCritical()), "#cf222e"
	case open.GetHigh() > 0:
		text, color = fmt.Sprintf("%d high", open.GetHigh()), "#bc4c00"
	case total > 0:
		text, color = fmt.Sprintf("%d open", total), "#7d4e00"
	}
	label := fmt.Sprintf("Open findings: %d critical, %d high, %d medium, %d low", open.GetCritical(), open.GetHigh(), open.GetMedium(), open.GetLow())
	const name, nameWidth, charWidth, padding = "palisade", 52, 6.5, 6
	width := int(float64(len(text)) * charWidth)
	all := nameWidth + width + 4*padding
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s"><title>%s</title>`+
		`<rect width="%d" height="20" rx="3" fill="#57606a"/><rect x="%d" width="%d" height="20" rx="3" fill="%s"/>`+
		`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`+
		`<text x="%d" y="14" textLength="%d">%s</text><text x="%d" y="14" textLength="%d">%s</text></g></svg>`,
		all, label, label, all, nameWidth+2*padding, width+2*padding, color, padding, nameWidth, name, nameWidth+3*padding, width, text)
}
