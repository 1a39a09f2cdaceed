// The signature of a webhook, made and compared in the browser: nothing of it is sent anywhere.

/** Why a signature cannot be told to hold; "holds" where it does. */
export type Verdict = "holds" | "differs" | "malformed"

const form = /^sha256=[0-9a-f]{64}$/

/** `sha256=` and the hex HMAC-SHA256 of `<timestamp>.<body>`, keyed with the whole secret, its prefix `whsec_` included. */
export async function sign(secret: string, timestamp: string, body: string): Promise<string> {
  const bytes = new TextEncoder()
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"])
  const mac = await crypto.subtle.sign("HMAC", key, bytes.encode(`${timestamp}.${body}`))
  return `sha256=${Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, "0")).join("")}`
}

/** Whether a signature is that of a timestamp and a body; malformed where it has not the form of one. The secret may not be empty. */
export async function verify(secret: string, timestamp: string, body: string, signature: string): Promise<Verdict> {
  if (!form.test(signature)) return "malformed"
  return (await sign(secret, timestamp, body)) === signature ? "holds" : "differs"
}
