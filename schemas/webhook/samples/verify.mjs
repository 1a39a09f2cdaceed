// Reads a delivery {headers, body, secret} from standard input and verifies it with independent libraries. It prints
// the names of those that accept it, and fails if one also accepts a changed body.

import { text } from "node:stream/consumers";
import { verify as octokit } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";

const { headers, body, secret } = JSON.parse(await text(process.stdin));
const timestamp = headers["X-Service-Timestamp"];
const signature = headers["X-Service-Signature"];

const libraries = {
  stripe: async (body) => {
    new Stripe("sk_test_unused").webhooks.constructEvent(body, `t=${timestamp},v1=${signature.replace("sha256=", "")}`, secret);
  },
  octokit: async (body) => {
    if (!(await octokit(secret, `${timestamp}.${body}`, signature))) throw new Error("rejected");
  },
  standardwebhooks: async (body) => {
    const names = ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"];
    new Webhook(secret).verify(body, Object.fromEntries(names.map((name) => [name.toLowerCase(), headers[name]])));
  },
};

for (const [name, verify] of Object.entries(libraries)) {
  await verify(body);
  const forged = await verify(body.replace("}", " }")).then(() => true, () => false);
  if (forged) throw new Error(`${name} accepts a changed body`);
  console.log(name);
}
