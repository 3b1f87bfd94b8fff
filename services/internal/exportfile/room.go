package exportfile

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/export"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// MaxFiles is the maximum number of files with findings of a caller.
	MaxFiles = 20
	// MaxSBOMs is the maximum number of SBOMs of a caller: a build may write one for each project.
	MaxSBOMs = 2000
	// MaxStored is the maximum size of all files of a deployment when an export starts.
	MaxStored = 32 << 30
)

// makeRoom lets files expire early, so that a new export of the caller is within the limits.
func makeRoom(ctx context.Context, tx *ent.Tx, r Request, now int64) error {
	rows, err := tx.Export.Query().Where(export.ExpiresAtGT(now)).Order(ent.Asc(export.FieldExpiresAt)).
		Select(export.FieldID, export.FieldActorKind, export.FieldActorID, export.FieldFormat, export.FieldByteCount, export.FieldError, export.FieldCompletedAt).All(ctx)
	if err != nil {
		return err
	}
	most := MaxFiles
	if isSBOM(r.Format) {
		most = MaxSBOMs
	}
	mine := func(row *ent.Export) bool {
		return ownerOf(row) == owner{r.ActorKind, r.ActorID} && isSBOM(row.Format) == isSBOM(r.Format)
	}
	ids, ok := surplus(rows, mine, most)
	if !ok {
		return apierr.FailedPrecondition("%d of your exports are still running; wait until one ends", most)
	}
	if len(ids) == 0 {
		return nil
	}
	return tx.Export.Update().Where(store.WithIDs[predicate.Export](ids)).SetExpiresAt(now).Exec(ctx)
}

type owner struct {
	kind string
	id   int64
}

func isSBOM(format string) bool { return format == SBOM || format == SBOMXML }

func ownerOf(row *ent.Export) owner { return owner{row.ActorKind, row.ActorID} }

// surplus chooses files that have to go before the caller starts another export, the oldest first: the caller's own
// beyond the maximum, then files of whoever has the most bytes. So no caller can keep others from exporting. Exports
// that are still running stay; ok is false if there is no room beside them.
func surplus(rows []*ent.Export, mine func(*ent.Export) bool, most int) (ids []int64, ok bool) {
	drop := func(chosen func(*ent.Export) bool) bool {
		at := slices.IndexFunc(rows, func(row *ent.Export) bool { return chosen(row) && !running(row) })
		if at < 0 {
			return false
		}
		ids = append(ids, rows[at].ID)
		rows = slices.Delete(rows, at, at+1)
		return true
	}
	own := 0
	for _, row := range rows {
		if mine(row) {
			own++
		}
	}
	for ; own >= most; own-- {
		if !drop(mine) {
			return nil, false
		}
	}
	for {
		total, largest := owners(rows)
		if total <= MaxStored || !drop(func(row *ent.Export) bool { return ownerOf(row) == largest }) {
			return ids, true
		}
	}
}

// owners returns the size of all files, and whoever has the most bytes in files that are complete.
func owners(rows []*ent.Export) (total int64, largest owner) {
	bytes := map[owner]int64{}
	for _, row := range rows {
		total += row.ByteCount
		if running(row) {
			continue
		}
		of := ownerOf(row)
		if bytes[of] += row.ByteCount; bytes[of] > bytes[largest] {
			largest = of
		}
	}
	return total, largest
}

// running reports whether a job still writes the file. A failed export has an error.
func running(row *ent.Export) bool { return row.CompletedAt == nil && row.Error == "" }
