// What makes pages quick. Everything works without it: links and forms are real.
'use strict';
(function () {
  const part = () => document.getElementById('part');
  const find = (selector, within) => (within || document).querySelector(selector);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));

  // A moment is shown in UTC, and said in local time.
  function sayTimes(within) {
    for (const t of all('time', within)) {
      const at = new Date(t.dateTime);
      if (!isNaN(at)) t.title = at.toLocaleString();
    }
  }

  // Inputs that another decides on are there when they count.
  function settle(within) {
    for (const one of all('[data-when]', within)) {
      const decides = one.closest('form').elements[one.dataset.when];
      if (decides) one.hidden = decides.value !== one.dataset.word;
    }
    for (const box of all('[data-opens]', within)) document.getElementById(box.dataset.opens).hidden = !box.checked;
  }

  // What takes long says so: a thin bar, and nothing jumps.
  let working = 0, leaving = false;
  function slow() { if (working > 0) document.documentElement.classList.add('slow'); }
  function quick() { document.documentElement.classList.remove('slow'); }
  async function ask(url, options) {
    working++;
    const timer = setTimeout(slow, 300);
    try {
      return await fetch(url, options);
    } catch (e) {
      lose();
      throw e;
    } finally {
      clearTimeout(timer);
      working = Math.max(0, working - 1);
      if (!working) quick();
    }
  }
  function stay() { leaving = false; working = 0; quick(); }
  addEventListener('beforeunload', () => { leaving = true; working++; setTimeout(slow, 300); setTimeout(stay, 15000); });
  addEventListener('pageshow', stay);

  // A controller that is lost is asked for until it is back. What was typed stays.
  const own = document.currentScript.src;
  let gone = false;
  function lose() {
    if (gone || leaving) return;
    gone = true;
    setLost(true);
    const look = wait => setTimeout(() => fetch(own, { method: 'HEAD', cache: 'no-store' }).then(found, () => look(Math.min(wait * 1.5, 8000))), wait);
    look(1000);
  }
  function found() {
    gone = false;
    setLost(false);
    if (document.body.dataset.live) { replace(location.href, true).catch(() => {}); follow(); }
  }
  function setLost(is) {
    const bar = document.getElementById('lost');
    if (bar) bar.hidden = !is;
  }

  // Others read a page without it being loaded anew.
  let asked = 0;
  async function read(url, options) {
    const answer = await ask(url, options || { headers: { Accept: 'text/html' }, redirect: 'follow' });
    const text = await answer.text();
    return { answer, page: new DOMParser().parseFromString(text, 'text/html') };
  }
  async function replace(url, keep) {
    const mine = ++asked;
    const { answer, page } = await read(url);
    if (mine !== asked) return;
    const fresh = page.getElementById('part');
    if (!fresh || page.body.className !== document.body.className) { location.href = url; return; }
    if (answer.redirected && !keep) url = answer.url;
    const on = document.activeElement, id = on && on.id, at = on && on.selectionStart, text = on && on.value;
    const opened = all('details', part()).map(d => d.open), same = url.split('?')[0] === location.href.split('?')[0] || url.startsWith('/');
    part().replaceWith(fresh);
    if (same) all('details', fresh).forEach((d, i) => { d.open = d.open || opened[i] || false; });
    if (!keep) { history.pushState(null, '', url); document.title = page.title; }
    const again = id && document.getElementById(id);
    if (again && fresh.contains(again)) {
      again.focus();
      if (keep && 'value' in again && again.type === 'search') again.value = text;
      try { again.setSelectionRange(at, at); } catch { /* it has no text */ }
    } else if (!keep) document.getElementById('main').focus({ preventScroll: true });
    ready(fresh);
    if (!keep) reveal();
  }
  addEventListener('popstate', () => replace(location.href, true).catch(() => location.reload()));

  document.addEventListener('click', e => {
    const a = e.target.closest('a[data-part]');
    if (a && !e.ctrlKey && !e.metaKey && !e.shiftKey && e.button === 0) {
      e.preventDefault();
      replace(a.href).catch(() => { if (!gone) location.href = a.href; });
    }
    const row = e.target.closest('tbody tr');
    if (row && !e.target.closest('a, input, pre') && !String(getSelection())) {
      const link = find('a.row', row);
      if (link) link.click();
    }
  });
  document.addEventListener('submit', e => {
    const form = e.target;
    if (form.matches('form[data-part]')) {
      e.preventDefault();
      const query = new URLSearchParams(new FormData(form));
      const chosen = all('[name=column]', form);
      if (chosen.length && chosen.every(c => c.checked === c.defaultChecked) && !new URLSearchParams(location.search).has('column')) query.delete('column');
      for (const [name, value] of Array.from(query)) if (value === '') query.delete(name);
      const url = location.pathname + (String(query) ? '?' + query : '');
      replace(url).catch(() => { if (!gone) form.submit(); });
    }
    if (form.matches('body.app #part form') && form.method === 'post') {
      e.preventDefault();
      send(form, e.submitter).catch(() => {});
    }
    if (form.method === 'post') { // once
      for (const b of all('button', form)) b.disabled = true;
      setTimeout(() => { for (const b of all('button', form)) b.disabled = false; }, 4000);
    }
  });
  // What came of a request, or would, is what one wants to see of its page.
  function reveal() {
    const result = document.getElementById('result') || document.getElementById('plan');
    if (result) result.scrollIntoView({ block: 'start' });
  }
  // A form is sent without leaving it, so that nothing is lost if nobody answers, to where
  // its button says: some save nothing.
  async function send(form, by) {
    const to = by && by.hasAttribute('formaction') ? by.formAction : form.action;
    const { answer, page } = await read(to, { method: 'POST', body: new URLSearchParams(new FormData(form, by)), headers: { Accept: 'text/html' } });
    const fresh = page.getElementById('part');
    if (!fresh) { location.href = answer.url; return; }
    if (!answer.ok && !find('form', fresh)) { // it says why not, and nothing else: what was typed stays
      for (const old of all('.problem', part())) old.remove();
      const says = document.createElement('p');
      says.className = 'problem';
      says.setAttribute('role', 'alert');
      says.textContent = all('h1, p:not(.actions)', fresh).map(e => e.textContent.trim().replace(/\.?$/, '.')).join(' ');
      form.before(says);
      says.scrollIntoView({ block: 'center' });
      return;
    }
    asked++;
    if (answer.redirected) history.pushState(null, '', answer.url);
    document.title = page.title;
    if (page.body.className === document.body.className) {
      part().replaceWith(fresh);
      if (page.body.dataset.live) document.body.dataset.live = page.body.dataset.live; else delete document.body.dataset.live;
      if (stream) { stream.close(); stream = null; }
      follow();
    } else document.body.replaceWith(document.adoptNode(page.body));
    ready(document);
    scrollTo(0, 0);
    (find('[aria-invalid]') || document.getElementById('main')).focus({ preventScroll: true });
    reveal();
  }
  document.addEventListener('change', e => { if (e.target.closest('form.record')) settle(e.target.form); });

  // The palette finds anything by its name.
  const palette = document.getElementById('palette');
  let typed = 0;
  function open() {
    if (!palette || palette.open) return;
    palette.showModal();
    find('input', palette).select();
  }
  async function look() {
    const mine = ++typed, q = find('input', palette).value.trim(), into = document.getElementById('palette-found');
    if (!q) { into.replaceChildren(); return; }
    await new Promise(done => setTimeout(done, 120));
    if (mine !== typed) return;
    const { page } = await read('/console/search?q=' + encodeURIComponent(q));
    const found = page.getElementById('found');
    if (mine !== typed) return;
    if (!found) { location.reload(); return; }
    into.replaceChildren(...found.childNodes);
    const first = find('a', into);
    if (first) first.classList.add('on');
  }
  function step(by) {
    const links = all('a', palette), now = links.findIndex(a => a.classList.contains('on'));
    if (!links.length) return;
    if (now >= 0) links[now].classList.remove('on');
    const next = links[(now + by + links.length) % links.length];
    next.classList.add('on');
    next.scrollIntoView({ block: 'nearest' });
  }
  if (palette) {
    find('input', palette).addEventListener('input', () => look().catch(() => {}));
    find('form', palette).addEventListener('submit', e => {
      const on = find('a.on', palette);
      if (on) { e.preventDefault(); location.href = on.href; }
    });
    palette.addEventListener('keydown', e => {
      if (e.key === 'ArrowDown') { e.preventDefault(); step(1); }
      if (e.key === 'ArrowUp') { e.preventDefault(); step(-1); }
      if (e.key === 'Escape') { e.preventDefault(); palette.close(); } // which a search box takes for itself
    });
    palette.addEventListener('click', e => { if (e.target === palette) palette.close(); });
  }
  document.addEventListener('keydown', e => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') { e.preventDefault(); open(); return; }
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, textarea, select, dialog')) return;
    if (e.key === '/') {
      const box = document.getElementById('filter') || document.getElementById('find');
      if (box) { e.preventDefault(); box.focus(); box.select(); }
    }
  });

  // What somebody has begun to type is not taken away.
  const begun = () => all('.ask input, .ask select', part()).some(i => i.options ? Array.from(i.options).some(o => o.selected !== o.defaultSelected) : i.value !== i.defaultValue);

  // Pages follow the network. A page that nobody looks at does not.
  let stream, waiting;
  function follow() {
    const live = document.body.dataset.live;
    if (!live || stream || document.hidden) return;
    stream = new EventSource('/console/events' + (live === '*' ? '' : '?kinds=' + encodeURIComponent(live)));
    const again = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { if (!begun()) replace(location.href, true).catch(() => {}); }, 400);
    };
    // What happens among routers may never stop: that does not put off the look at it.
    let soon = 0;
    const later = () => { soon = soon || setTimeout(() => { soon = 0; again(); }, 1600); };
    for (const name of ['router', 'link', 'circuit', 'missed']) stream.addEventListener(name, later);
    stream.addEventListener('change', again);
    stream.addEventListener('reset', again);
    stream.addEventListener('end', again);
    stream.onerror = () => {
      if (document.hidden) return;
      const over = stream && stream.readyState === EventSource.CLOSED;
      fetch(own, { method: 'HEAD', cache: 'no-store' }).catch(lose);
      if (over) { stream = null; setTimeout(follow, 5000); }
    };
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && stream) { stream.close(); stream = null; } else if (!document.hidden && document.body.dataset.live && !stream) {
      replace(location.href, true).catch(() => {});
      follow();
    }
  });

  // Suggestions while somebody types: names of records, roles, and the words of filters.
  const offers = document.createElement('ul');
  offers.id = 'offers';
  offers.hidden = true;
  offers.setAttribute('role', 'listbox');
  offers.setAttribute('aria-label', 'Suggestions');
  let offer = null, sought = 0; // which input is offered what
  function withdraw() {
    sought++;
    if (!offer) return;
    offer.input.removeAttribute('aria-activedescendant');
    offer.input.removeAttribute('aria-controls');
    if (offer.input.getAttribute('role') === 'combobox') offer.input.setAttribute('aria-expanded', 'false');
    offer = null;
    offers.hidden = true;
    offers.replaceChildren();
  }
  // The part of what was typed that a suggestion takes the place of.
  function piece(input) {
    const at = input.selectionStart, text = input.value;
    if (input.dataset.words) { const from = at - /[\w.]*$/.exec(text.slice(0, at))[0].length; return { from, to: at, text: text.slice(from, at) }; }
    if (input.tagName !== 'TEXTAREA') return { from: 0, to: text.length, text };
    const from = text.lastIndexOf('\n', at - 1) + 1, end = text.indexOf('\n', at), to = end < 0 ? text.length : end;
    return { from, to, text: text.slice(from, to) };
  }
  const operators = { text: ['=', '!=', 'contains', 'icontains', 'in ["'], number: ['=', '!=', '<', '<=', '>', '>=', 'between'], moment: ['>', '<', '>=', '<=', 'between'], 'yes or no': ['=', '!='], list: ['=', '!=', 'contains', 'icontains', 'in ["'] };
  function words(input, typed) {
    const known = {};
    for (const o of document.getElementById(input.dataset.words).options) known[o.value] = { type: o.label, values: o.dataset.values };
    const before = input.value.slice(0, input.selectionStart - typed.length), said = before.match(/"(?:[^"\\]|\\.)*"?|[\w.]+|[=!<>]+|[^\s]/g) || [], last = said[said.length - 1] || '';
    const low = last.toLowerCase(), field = known[last] || low === ')' && known[said[said.length - 2]], open = last[0] === '"' && (last.length < 2 || last[last.length - 1] !== '"');
    if (open) return [];
    let next = [];
    if (!last || ['and', 'or', 'not', '(', 'by', ','].includes(low)) {
      for (const name in known) next.push(known[name].type === 'list' && low !== '(' ? 'anyOf(' + name + ')' : name);
      if (typed === '' && !last) return [];
    } else if (field) next = said[said.length - 2] === 'by' ? ['desc', 'asc', 'limit'] : operators[field.type] || [];
    else if (/^([=!<>]+|contains|icontains|between)$/.test(low)) {
      const of = known[said[said.length - 2]] || {};
      if (of.type === 'yes or no') next = ['true', 'false'];
      else if (of.type === 'moment') next = ['datetime(' + new Date(Date.now() - 864e5).toISOString().slice(0, 19) + 'Z)'];
      else if (of.values) next = of.values.split(', ').map(v => '"' + v + '"');
    } else if (!/^[[(]$/.test(last)) next = ['and', 'or', 'sort by', 'limit'];
    return next.filter(w => w.toLowerCase().includes(typed.toLowerCase()) && w !== typed);
  }
  async function suggest(input) {
    const mine = ++sought, now = piece(input);
    let list;
    if (input.dataset.words) list = words(input, now.text);
    else {
      if (input.dataset.after && now.text.includes(input.dataset.after)) { withdraw(); return; }
      await new Promise(done => setTimeout(done, 120));
      if (mine !== sought) return;
      const answer = await fetch('/console/suggest?' + new URLSearchParams({ for: input.dataset.suggest, q: now.text.trim() }));
      if (!answer.ok) return;
      list = (await answer.json()).filter(text => text !== now.text.trim());
    }
    if (mine !== sought || document.activeElement !== input) return;
    withdraw();
    if (!list.length) return;
    offer = { input, now, on: -1 };
    if (!offers.isConnected) document.getElementById('main').append(offers);
    offers.replaceChildren(...list.slice(0, 20).map((text, i) => {
      const li = document.createElement('li');
      li.id = 'offer-' + i;
      li.textContent = text;
      li.setAttribute('role', 'option');
      li.setAttribute('aria-selected', 'false');
      return li;
    }));
    const box = input.getBoundingClientRect();
    offers.style.left = box.left + scrollX + 'px';
    offers.style.top = box.bottom + scrollY + 2 + 'px';
    offers.style.minWidth = Math.min(box.width, 280) + 'px';
    offers.hidden = false;
    input.setAttribute('aria-controls', 'offers');
    if (input.type === 'text') { input.setAttribute('role', 'combobox'); input.setAttribute('aria-expanded', 'true'); }
  }
  function point(by) {
    const list = offers.children;
    if (offer.on >= 0) list[offer.on].setAttribute('aria-selected', 'false');
    offer.on = (offer.on + by + list.length + (offer.on < 0 && by < 0 ? 1 : 0)) % list.length;
    list[offer.on].setAttribute('aria-selected', 'true');
    list[offer.on].scrollIntoView({ block: 'nearest' });
    offer.input.setAttribute('aria-activedescendant', 'offer-' + offer.on);
  }
  function accept(li) {
    const { input, now } = offer, more = input.dataset.words ? ' ' : input.dataset.after || '', text = li.textContent;
    withdraw();
    input.setRangeText(text + (text.endsWith('"') && text.includes('[') ? '' : more), now.from, now.to, 'end');
    input.focus();
    if (input.dataset.words) suggest(input).catch(() => {});
  }
  const suggests = e => e.target.matches && e.target.matches('[data-suggest], [data-words]');
  document.addEventListener('input', e => { if (suggests(e)) suggest(e.target).catch(() => {}); });
  document.addEventListener('focusin', e => {
    if (suggests(e)) e.target.setAttribute('aria-autocomplete', 'list');
    if (offer && e.target !== offer.input) withdraw();
  });
  document.addEventListener('focusout', e => { if (offer && e.target === offer.input) withdraw(); });
  addEventListener('resize', withdraw);
  offers.addEventListener('mousedown', e => {
    e.preventDefault();
    const li = e.target.closest('li');
    if (li && offer) accept(li);
  });
  document.addEventListener('keydown', e => {
    if (!suggests(e) || e.altKey || e.metaKey) return;
    if (!offer) {
      if (e.key === 'ArrowDown' && e.target.tagName !== 'TEXTAREA' || e.key === ' ' && e.ctrlKey) { e.preventDefault(); suggest(e.target).catch(() => {}); }
      return;
    }
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') point(e.key === 'ArrowDown' ? 1 : -1);
    else if (e.key === 'Escape') withdraw();
    else if ((e.key === 'Enter' || e.key === 'Tab') && offer.on >= 0) accept(offers.children[offer.on]);
    else return;
    e.preventDefault();
  });

  // What is to be pasted elsewhere is copied by a button.
  document.addEventListener('click', e => {
    const button = e.target.closest('[data-copy]');
    if (!button) return;
    navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => {
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    }, () => getSelection().selectAllChildren(document.getElementById(button.dataset.copy)));
  });

  // Some things nobody tells of.
  const every = Number(document.body.dataset.every);
  if (every) setInterval(() => { if (!document.hidden && !gone && !begun()) replace(location.href, true).catch(() => {}); }, every * 1000);

  document.documentElement.classList.add('js');
  function ready(within) { sayTimes(within); settle(within); }
  ready(document);
  follow();
})();
