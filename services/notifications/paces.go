package notifications

import (
	"crypto/sha256"
	"time"
)

const (
	// chatPause is the time between two messages of this node to one URL of a chat, from the end of the first: chats take
	// about one message a second.
	chatPause = time.Second
	// maxPace is how long a message in flight blocks the next one, if its end is not reported.
	maxPace = sendTimeout + 2*sendGrace
	// maxPaces is the number of URLs from which old ones are forgotten.
	maxPaces = 1000
)

// pace identifies a URL that gets one message at a time. The zero value is for all other receivers.
type pace [sha256.Size]byte

// paceOf is the pace of a chat's URL. Rules may share it.
func paceOf(url string) pace { return sha256.Sum256([]byte(url)) }

// paces has the time from which each URL may get the next message.
type paces map[pace]time.Time

// free reports whether the URL may get a message now.
func (p paces) free(of pace, now time.Time) bool { return of == pace{} || !now.Before(p[of]) }

// begin notes that a message is on its way.
func (p paces) begin(of pace, now time.Time) {
	if of == (pace{}) {
		return
	}
	if len(p) >= maxPaces {
		for key, until := range p {
			if !now.Before(until) {
				delete(p, key)
			}
		}
	}
	p[of] = now.Add(maxPace)
}

// end notes that the message has arrived or failed.
func (p paces) end(of pace, now time.Time) {
	if of != (pace{}) {
		p[of] = now.Add(chatPause)
	}
}
