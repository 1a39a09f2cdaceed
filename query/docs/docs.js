// Reads /openapi.json, lists the operations, and sends requests from forms.
'use strict';

const element = (tag, properties = {}, ...children) => {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
};

let api;

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
    const text = await answer.text();
    const took = (performance.now() - started).toFixed(0);
    const shown = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    out.textContent += `${answer.status} in ${took} ms\n${shown}\n\n${pretty(text)}`;
  } catch (error) {
    out.textContent += `no answer: ${error.message}`;
  }
};

const operation = (method, path, op) => {
  const box = element('details', { id: op.operationId },
    element('summary', {}, element('span', { className: 'method', textContent: method.toUpperCase() }), element('code', { textContent: path }), element('span', { textContent: op.summary })));
  if (op.description) box.append(element('p', { textContent: op.description }));
  const parameters = (op.parameters ?? []).map(resolve);
  const fields = parameters.map(input);
  parameters.forEach((p, i) => box.append(element('label', {}, `${p.name}${p.required ? ' *' : ''} `, element('span', { className: 'hint', textContent: `${p.description} (${bounds(p.schema)})` }), fields[i])));
  const media = op.requestBody?.content['application/json'];
  const body = media && element('textarea', { value: example(media), spellcheck: false });
  if (body) box.append(element('label', {}, 'body', body));
  const out = element('pre', { hidden: true });
  box.append(element('button', { textContent: 'Send', onclick: () => { out.hidden = false; send(method, path, parameters, fields, body, out); } }), out);
  for (const [status, reference] of Object.entries(op.responses)) {
    const response = resolve(reference);
    box.append(element('p', { className: 'hint', textContent: `${status}: ${response.description}` }));
    const text = status.startsWith('2') && example(response.content?.['application/json']);
    if (text) box.append(element('details', {}, element('summary', { textContent: 'example' }), element('pre', { textContent: text })));
  }
  return box;
};

const webhook = (name, op) => {
  const media = op.requestBody.content['application/json'];
  return element('details', {},
    element('summary', {}, element('span', { className: 'method', textContent: 'POST' }), element('code', { textContent: name }), element('span', { textContent: op.summary })),
    element('p', { textContent: op.description }),
    ...op.parameters.map(resolve).map((p) => element('p', { className: 'hint', textContent: `${p.name}${p.required ? ' *' : ''}: ${p.description}` })),
    element('pre', { textContent: example(media) }));
};

const show = async () => {
  const main = document.getElementById('operations');
  const answer = await fetch('/openapi.json');
  api = await answer.json();
  document.getElementById('summary').textContent = api.info.summary;
  document.getElementById('conventions').append(...api.info.description.split('\n\n').map((text) => element('p', { textContent: text.replace(/\*\*|`/g, '') })));
  main.replaceChildren();
  for (const tag of api.tags) {
    main.append(element('h2', { textContent: tag.name }), element('p', { textContent: tag.description }));
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
