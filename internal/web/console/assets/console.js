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

  // Others read a page without it being loaded anew.
  let asked = 0;
  async function read(url) {
    const answer = await fetch(url, { headers: { Accept: 'text/html' }, redirect: 'follow' });
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
  }
  addEventListener('popstate', () => replace(location.href, true).catch(() => location.reload()));

  document.addEventListener('click', e => {
    const a = e.target.closest('a[data-part]');
    if (a && !e.ctrlKey && !e.metaKey && !e.shiftKey && e.button === 0) {
      e.preventDefault();
      replace(a.href).catch(() => { location.href = a.href; });
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
      replace(url).catch(() => form.submit());
    }
    if (form.method === 'post') { // once
      for (const b of all('button', form)) b.disabled = true;
      setTimeout(() => { for (const b of all('button', form)) b.disabled = false; }, 4000);
    }
  });
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
  const lost = document.getElementById('lost');
  let stream, waiting, wasLost = false;
  function follow() {
    const live = document.body.dataset.live;
    if (!live || stream || document.hidden) return;
    stream = new EventSource('/console/events' + (live === '*' ? '' : '?kinds=' + encodeURIComponent(live)));
    const again = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { if (!begun()) replace(location.href, true).catch(() => {}); }, 400);
    };
    stream.addEventListener('ready', () => { if (wasLost) again(); wasLost = lost.hidden = false; lost.hidden = true; });
    stream.addEventListener('change', again);
    stream.addEventListener('reset', again);
    stream.addEventListener('end', again);
    stream.onopen = () => { lost.hidden = true; };
    stream.onerror = () => {
      if (document.hidden) return;
      const over = stream && stream.readyState === EventSource.CLOSED;
      fetch('/console/search').then(() => { lost.hidden = true; }, () => { lost.hidden = false; wasLost = true; });
      if (over) { stream = null; setTimeout(follow, 5000); }
    };
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && stream) { stream.close(); stream = null; } else if (!document.hidden && document.body.dataset.live && !stream) {
      replace(location.href, true).catch(() => {});
      follow();
    }
  });

  document.documentElement.classList.add('js');
  function ready(within) { sayTimes(within); settle(within); }
  ready(document);
  follow();
})();
