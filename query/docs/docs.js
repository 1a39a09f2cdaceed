// Shows the OpenAPI document, whose descriptions the server has rendered, and sends requests from forms.
'use strict';

const element = (tag, properties = {}, ...children) => {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
};

let api;

// rendered makes nodes of HTML that the server made of a description. A parsed document runs no script.
const rendered = (html) => [...new DOMParser().parseFromString(html ?? '', 'text/html').body.childNodes];

// tree shows a schema, field by field, down to those that have none. seen guards against a schema within itself.
const tree = (schema, seen = []) => {
  const s = resolve(schema);
  const inner = s.type === 'array' ? resolve(s.items) : (s.anyOf ? s.anyOf.map(resolve).find((one) => one.properties) ?? s : s);
  if (!inner.properties || seen.includes(inner)) return null;
  return element('ul', { className: 'tree' }, ...Object.entries(inner.properties).map(([name, property]) => {
    const p = resolve(property);
    const type = p.const !== undefined ? JSON.stringify(p.const) : p.enum ? p.enum.join(' | ') : [p.type ?? (p.anyOf ? 'object | null' : 'object')].flat().join(' | ');
    const head = [element('code', { textContent: name }), element('span', { className: 'hint', textContent: ` ${type}${inner.required?.includes(name) ? '' : ', optional'} ` }),
      element('span', { className: 'hint' }, ...rendered(p.description))];
    const below = tree(p, [...seen, inner]);
    return element('li', {}, ...(below ? [element('details', {}, element('summary', {}, ...head), below)] : head));
  }));
};

// languages write a request down; each gets the method, the URL, whether a key is needed, and the body.
const languages = {
  curl: (method, url, key, body) => `curl${method === 'GET' ? '' : ` -X ${method}`} '${url}'${key ? " \\\n  -H \"x-api-key: $NAVLOG_API_KEY\"" : ''}${body ? ` \\\n  -H 'content-type: application/json' -d '${body}'` : ''}`,
  JavaScript: (method, url, key, body) => `const response = await fetch(${JSON.stringify(url)}, {\n  method: '${method}',\n${key || body ? `  headers: {${key ? " 'x-api-key': process.env.NAVLOG_API_KEY," : ''}${body ? " 'content-type': 'application/json'," : ''} },\n` : ''}${body ? `  body: JSON.stringify(${body}),\n` : ''}})\nconst { ok, data, error } = await response.json()`,
  Python: (method, url, key, body) => `import json, os, urllib.request\n\nrequest = urllib.request.Request('${url}', method='${method}'${body ? `, data=json.dumps(${body}).encode()` : ''})\n${key ? "request.add_header('x-api-key', os.environ['NAVLOG_API_KEY'])\n" : ''}${body ? "request.add_header('content-type', 'application/json')\n" : ''}answer = json.load(urllib.request.urlopen(request))`,
  Go: (method, url, key, body) => `request, err := http.NewRequest("${method}", "${url}", ${body ? `strings.NewReader(\`${body}\`)` : 'nil'})\nif err != nil {\n\treturn err\n}\n${key ? 'request.Header.Set("x-api-key", os.Getenv("NAVLOG_API_KEY"))\n' : ''}${body ? 'request.Header.Set("content-type", "application/json")\n' : ''}response, err := http.DefaultClient.Do(request)`,
};

// samples shows a request in the language that is chosen.
const samples = (method, path, parameters, key, body) => {
  const filled = parameters.filter((p) => p.in === 'path').reduce((at, p) => at.replace(`{${p.name}}`, p.example), path);
  const required = parameters.filter((p) => p.in === 'query' && p.required).map((p) => `${p.name}=${encodeURIComponent(p.example)}`).join('&');
  const url = location.origin + filled + (required ? `?${required}` : '');
  const code = element('pre', { tabIndex: 0 });
  const buttons = Object.keys(languages).map((name) => element('button', { type: 'button', textContent: name, onclick: () => choose(name) }));
  const choose = (name) => {
    code.textContent = languages[name](method.toUpperCase(), url, key, body);
    buttons.forEach((button) => button.setAttribute('aria-pressed', String(button.textContent === name)));
  };
  choose('curl');
  return element('div', {}, element('h3', { textContent: 'Request' }), element('div', { className: 'languages' }, ...buttons), code);
};

// resolve follows a local reference of the document.
const resolve = (node) => {
  while (node && node.$ref) {
    node = node.$ref.slice(2).split('/').reduce((at, step) => at[step.replace(/~1/g, '/').replace(/~0/g, '~')], api);
  }
  return node;
};

// bounds says in a few words what values a schema takes.
const bounds = (schema) => {
  const s = resolve(schema);
  if (s.anyOf) return s.anyOf.map(bounds).join(' or ');
  if (s.enum) return s.enum.join(', ');
  const parts = [s.format || s.type];
  if (s.minimum !== undefined) parts.push(`${s.minimum} to ${s.maximum}`);
  if (s.pattern) parts.push(s.pattern);
  else if (s.maxLength) parts.push(`at most ${s.maxLength} characters`);
  if (s.default !== undefined) parts.push(`default ${s.default}`);
  return parts.join(', ');
};

const input = (parameter) => {
  const schema = resolve(parameter.schema);
  if (!schema.enum) return element('input', { spellcheck: false, value: parameter.in === 'path' ? parameter.example : '' });
  return element('select', {}, element('option', { value: '', textContent: '' }),
    ...schema.enum.map((value) => element('option', { value, textContent: value })));
};

// example is the first example of a media type, as text.
const example = (media) => {
  const first = resolve(Object.values(media?.examples ?? {})[0]);
  return first ? JSON.stringify(first.value, null, 2) : '';
};

const pretty = (text) => {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
};

// beginning reads a response until it is long, or for some seconds: a stream has no end.
const beginning = async (answer) => {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const late = setTimeout(() => reader.cancel(), 5_000);
  let text = '';
  try {
    for (let part; text.length < 100_000 && !(part = await reader.read()).done;) text += part.value;
  } finally {
    clearTimeout(late);
  }
  reader.cancel();
  return text;
};

const send = async (method, path, parameters, fields, body, out) => {
  const query = new URLSearchParams();
  const headers = {};
  parameters.forEach((p, i) => {
    const value = fields[i].value;
    if (p.in === 'path') path = path.replace(`{${p.name}}`, encodeURIComponent(value));
    else if (value === '') return;
    else if (p.in === 'query') query.set(p.name, value);
    else headers[p.name] = value;
  });
  const key = document.getElementById('key').value;
  if (key) headers['x-api-key'] = key;
  if (body) headers['content-type'] = 'application/json';
  const url = query.size ? `${path}?${query}` : path;
  out.textContent = `${method.toUpperCase()} ${url}\n`;
  try {
    const started = performance.now();
    const answer = await fetch(url, { method, headers, body: body ? body.value : undefined, cache: 'no-store' });
    const live = answer.headers.get('content-type')?.startsWith('text/event-stream');
    const text = await (live ? beginning(answer) : answer.text());
    const took = (performance.now() - started).toFixed(0);
    const shown = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    out.textContent += `${answer.status} in ${took} ms\n${shown}\n\n${pretty(text)}`;
  } catch (error) {
    out.textContent += `no answer: ${error.message}`;
  }
};

const operation = (method, path, op) => {
  const box = element('details', { id: op.operationId },
    element('summary', {}, element('span', { className: 'method', textContent: method.toUpperCase() }), ' ', element('code', { textContent: path }), ' ', element('span', { textContent: op.summary })));
  box.append(element('p', {}, element('a', { href: `#${op.operationId}`, textContent: 'Link to this operation' })));
  box.append(element('div', {}, ...rendered(op.description)));
  const parameters = (op.parameters ?? []).map(resolve);
  const fields = parameters.map(input);
  parameters.forEach((p, i) => box.append(element('label', {}, `${p.name}${p.required ? ' *' : ''} `, element('span', { className: 'hint' }, ...rendered(p.description), ` (${bounds(p.schema)})`), fields[i])));
  const media = op.requestBody?.content['application/json'];
  const body = media && element('textarea', { value: example(media), spellcheck: false });
  if (body) box.append(element('label', {}, 'body', body));
  box.append(samples(method, path, parameters, Boolean(op.security?.length) && op.security.every((one) => Object.keys(one).length > 0), body && JSON.stringify(JSON.parse(body.value || '{}'))));
  const out = element('pre', { hidden: true, tabIndex: 0 });
  box.append(element('button', { textContent: 'Send', onclick: () => { out.hidden = false; send(method, path, parameters, fields, body, out); } }), out);
  for (const [status, reference] of Object.entries(op.responses)) {
    const response = resolve(reference);
    box.append(element('div', { className: 'hint' }, `${status}: `, ...rendered(response.description)));
    const fields = status.startsWith('2') && response.content?.['application/json'] && tree(response.content['application/json'].schema);
    if (fields) box.append(element('details', {}, element('summary', { textContent: 'fields' }), fields));
    const text = status.startsWith('2') && example(response.content?.['application/json']);
    if (text) box.append(element('details', {}, element('summary', { textContent: 'example' }), element('pre', { tabIndex: 0, textContent: text })));
  }
  return box;
};

const webhook = (name, op) => {
  const media = op.requestBody.content['application/json'];
  return element('details', {},
    element('summary', {}, element('span', { className: 'method', textContent: 'POST' }), ' ', element('code', { textContent: name }), ' ', element('span', { textContent: op.summary })),
    element('div', {}, ...rendered(op.description)),
    ...op.parameters.map(resolve).map((p) => element('div', { className: 'hint' }, `${p.name}${p.required ? ' *' : ''}: `, ...rendered(p.description))),
    element('pre', { tabIndex: 0, textContent: example(media) }));
};

const show = async () => {
  const main = document.getElementById('operations');
  const answer = await fetch('/docs/reference.json');
  api = await answer.json();
  document.getElementById('summary').textContent = api.info.summary;
  document.getElementById('conventions').append(...rendered(api.info.description));
  main.replaceChildren();
  for (const tag of api.tags) {
    main.append(element('h2', { textContent: tag.name }), element('div', {}, ...rendered(tag.description)));
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, op] of Object.entries(item)) {
        if (op.tags.includes(tag.name)) main.append(operation(method, path, op));
      }
    }
  }
  main.append(element('h2', { textContent: 'webhooks' }), element('p', { textContent: 'What partners receive.' }));
  for (const [name, item] of Object.entries(api.webhooks)) main.append(webhook(name, item.post));
  open();
};

// open shows the operation that the address names, as a search does.
const open = () => {
  const named = document.getElementById(location.hash.slice(1));
  if (named?.tagName !== 'DETAILS') return;
  named.open = true;
  named.scrollIntoView();
};
addEventListener('hashchange', open);

show().catch((error) => { document.getElementById('operations').textContent = `The document could not be read: ${error.message}`; });
