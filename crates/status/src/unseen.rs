//! Characters that are invisible or control the terminal.

/// Returns true if a character moves the cursor, reorders or restyles its surroundings, ends a line, or is invisible.
/// Text from outside that contains such characters could fake output.
pub fn is_unseen(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    character.is_control()
        || matches!(character,
            // Unicode's format characters (Cf), bidirectional ones among them.
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
            // Tags and variation selectors, which can encode whole texts; fillers.
            | '\u{e0000}'..='\u{e0fff}' | '\u{fe00}'..='\u{fe0f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::is_unseen;

    #[test]
    fn letters_are_visible_and_bidi_controls_are_not() {
        assert!("aä漢e\u{301}\u{5d0}\u{627} -…\u{fffd}🦀".chars().all(|character| !is_unseen(character)));
        let unseen = "\0\t\n\r\u{1b}\u{7f}\u{85}\u{9b}\u{ad}\u{61c}\u{200d}\u{202e}\u{2028}\u{2029}\u{2066}\u{feff}\u{e0041}";
        assert!(unseen.chars().all(is_unseen));
    }
}
