package timing

import (
	"errors"
	"time"

	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
)

const (
	hourly = notificationsv1.DigestCadence_DIGEST_CADENCE_HOURLY
	weekly = notificationsv1.DigestCadence_DIGEST_CADENCE_WEEKLY
)

// CheckDigest finds what the rules of the proto cannot. The error is about a field, and for its author.
func CheckDigest(d *notificationsv1.DigestSchedule) error {
	if d.GetWeekday() != 0 && d.GetCadence() != weekly {
		return errors.New("weekday is for DIGEST_CADENCE_WEEKLY only")
	}
	if d.GetHour() != 0 && d.GetCadence() == hourly {
		return errors.New("hour is for DIGEST_CADENCE_DAILY and DIGEST_CADENCE_WEEKLY only")
	}
	return checkZone(d.GetTimeZone())
}

// NextDigest is the first time after another at which a digest is due.
func NextDigest(d *notificationsv1.DigestSchedule, after time.Time) time.Time {
	loc := zone(d.GetTimeZone())
	local := after.In(loc)
	if d.GetCadence() == hourly {
		_, offset := local.Zone() // some zones are off by half an hour
		shift := time.Duration(offset) * time.Second
		return after.Add(shift).Truncate(time.Hour).Add(time.Hour - shift)
	}
	for day := 0; ; day++ { // at most 8 days
		due := time.Date(local.Year(), local.Month(), local.Day()+day, int(d.GetHour()), 0, 0, 0, loc)
		if due.After(after) && (d.GetCadence() != weekly || due.Weekday() == time.Weekday(max(d.GetWeekday(), 1)%7)) {
			return due
		}
	}
}
