// Package receiver is a partner's end of the webhooks, for demonstrations: an HTTPS server on the loopback interface
// that checks every delivery the way the API document asks a partner to, and prints one line for each event.
//
//	POST /partners/{id} ──▶ partner known? ──▶ body small? ──▶ signature and time right? ──▶ event well formed?
//	                             │ 404              │ 413                │ 401                    │ 400
//	                                                                                              ▼
//	                                              200, "new" ◀── id never seen ── or ──▶ 200, "repeat"
//
// The server's certificate is signed by an authority of its own, which a sender must trust (CAFile). It remembers the
// ids of all events that were signed correctly.
package receiver
